/* SPDX-License-Identifier: MIT */
/* Handing buffers over by count, in C++: see xmem/claims.h. A part of xmem.hpp. */
#ifndef XMEM_CLAIMS_HPP
#define XMEM_CLAIMS_HPP

#include "pool.hpp"

namespace xmem {

/*
 * Set the number of references, this handle included. Claims last for @timeout, or for 10 seconds
 * if it is 0 or missing.
 */
template <class Rep, class Period>
inline bool set_ref_count(const buffer &of, std::uint32_t count,
			  std::chrono::duration<Rep, Period> timeout,
			  std::error_code &code) noexcept
{
	return detail::done(xmem_set_ref_count(of.raw(), count, to_nanoseconds(timeout)), code);
}
template <class Rep, class Period>
inline void set_ref_count(const buffer &of, std::uint32_t count,
			  std::chrono::duration<Rep, Period> timeout)
{
	detail::or_throw([&](std::error_code &code) {
		return set_ref_count(of, count, timeout, code);
	});
}
inline bool set_ref_count(const buffer &of, std::uint32_t count, std::error_code &code) noexcept
{
	return set_ref_count(of, count, no_wait, code);
}
inline void set_ref_count(const buffer &of, std::uint32_t count)
{
	set_ref_count(of, count, no_wait);
}

/* Set further references of a held buffer aside, for @timeout or for 10 seconds. */
template <class Rep, class Period>
inline bool offer(const buffer &of, std::uint32_t more, std::chrono::duration<Rep, Period> timeout,
		  std::error_code &code) noexcept
{
	return detail::done(xmem_offer(of.raw(), more, to_nanoseconds(timeout)), code);
}
template <class Rep, class Period>
inline void offer(const buffer &of, std::uint32_t more, std::chrono::duration<Rep, Period> timeout)
{
	detail::or_throw([&](std::error_code &code) { return offer(of, more, timeout, code); });
}
inline bool offer(const buffer &of, std::uint32_t more, std::error_code &code) noexcept
{
	return detail::done(xmem_offer(of.raw(), more, 0), code);
}
inline void offer(const buffer &of, std::uint32_t more)
{
	detail::or_throw([&](std::error_code &code) { return offer(of, more, code); });
}

/*
 * Leave the reference to the next client. The object is empty afterwards; after an error it has the
 * buffer as before.
 */
inline bool forget(buffer &it, std::error_code &code) noexcept
{
	if (!detail::done(xmem_forget(it.raw()), code))
		return false;
	it.detach();
	return true;
}
inline void forget(buffer &it)
{
	detail::or_throw([&](std::error_code &code) { return forget(it, code); });
}

/* Set one more reference aside, or drop one, for the contents of a token. */
inline bool add_ref(const pool &in, std::uint64_t token, std::error_code &code) noexcept
{
	return detail::done(xmem_add_ref(in.raw(), token), code);
}
inline void add_ref(const pool &in, std::uint64_t token)
{
	detail::or_throw([&](std::error_code &code) { return add_ref(in, token, code); });
}
inline bool drop_ref(const pool &in, std::uint64_t token, std::error_code &code) noexcept
{
	return detail::done(xmem_drop_ref(in.raw(), token), code);
}
inline void drop_ref(const pool &in, std::uint64_t token)
{
	detail::or_throw([&](std::error_code &code) { return drop_ref(in, token, code); });
}

/* The number of claims of the contents of a token. */
inline std::uint32_t claims(const pool &in, std::uint64_t token, std::error_code &code) noexcept
{
	const int count = xmem_claims(in.raw(), token);

	return detail::done(count < 0 ? count : 0, code) ? static_cast<std::uint32_t>(count) : 0;
}
inline std::uint32_t claims(const pool &in, std::uint64_t token)
{
	return detail::or_throw([&](std::error_code &code) { return claims(in, token, code); });
}

/* End all claims. */
inline bool void_claims(const pool &in, std::uint64_t token, std::error_code &code) noexcept
{
	return detail::done(xmem_void_claims(in.raw(), token), code);
}
inline void void_claims(const pool &in, std::uint64_t token)
{
	detail::or_throw([&](std::error_code &code) { return void_claims(in, token, code); });
}

} // namespace xmem

#endif
