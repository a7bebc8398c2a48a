// SPDX-License-Identifier: MIT
/*
 * Memory of a GPU that the program has made: the callable that is called when no client uses the
 * memory any more.
 */
#include <memory>

#include "gpu.hpp"

namespace {

/* Counts of the callables: calls, and live objects. */
struct told {
	int calls = 0;
	int alive = 0;
};

/* A callable that counts, and a move-only one, like one that owns memory. */
class counting {
public:
	explicit counting(told &to) : to_(&to) { to_->alive++; }
	counting(const counting &other) : to_(other.to_) { to_->alive++; }
	~counting() { to_->alive--; }
	void operator()() const noexcept { to_->calls++; }

private:
	told *to_;
};

auto moved(told &to)
{
	return [mine = std::make_unique<counting>(to)]() noexcept { (*mine)(); };
}

int plain_calls;
void plain_call() noexcept { plain_calls++; }

/* A writer, and memory that belongs to the program. */
struct attach_scene {
	attach_scene() : writer(new_name(), XMEM_OPEN_WRITER), memory(device.alloc()) {}
	~attach_scene() { device.free(memory); }

	gpu device;
	xmem::pool writer;
	void *memory;
};

struct throwing {
	void operator()() const {}
};

struct wanting {
	void operator()(int) const noexcept {}
};

template <class F>
using attached = decltype(std::declval<xmem::pool &>().attach_cuda(nullptr, 1, 0,
								   std::declval<F>()));
template <class F>
using attached_code = decltype(std::declval<xmem::pool &>().attach_cuda(
	nullptr, 1, 0, std::declval<F>(), std::declval<std::error_code &>()));

static_assert(has<attached, counting> && has<attached, counting &> &&
	      has<attached, void (*)() noexcept> && has<attached_code, const counting &>,
	      "what throws nothing");
static_assert(!has<attached, throwing> && !has<attached_code, throwing> &&
	      !has<attached, void (*)()> && !has<attached, wanting> &&
	      !has<attached, std::nullptr_t> && !has<attached_code, int>,
	      "what may throw, or cannot be called so");

} // namespace

TEST(cuda_memory_is_given_back_by_one_call)
{
	attach_scene s;
	told last;
	std::error_code code;
	const counting named(last);
	xmem::buffer buffer = s.writer.attach_cuda(s.memory, bytes_each, 0, named);

	CHECK(last.alive == 2 && buffer.size() == bytes_each);	/* a copy is kept */
	THROWS(EPERM, buffer.cuda_ptr_mut());
	xmem::buffer held = s.writer.get(buffer.publish(XMEM_PUBLISH_KEEP));

	buffer.reset();
	s.writer.stat();
	CHECK(last.calls == 0 && held.cuda_ptr().data() == s.memory);
	held.reset();
	while (last.calls == 0)
		s.writer.stat();
	CHECK(last.calls == 1 && last.alive == 1);
	buffer = s.writer.attach_cuda(s.memory, bytes_each, XMEM_MEMORY_READERS, moved(last), code);
	CHECK(!code && last.alive == 2);
	buffer.reset();
	s.writer.reset();
	CHECK(last.calls == 2 && last.alive == 1);
}

TEST(cuda_memory_is_given_back_to_functions_and_to_nobody)
{
	attach_scene s;

	plain_calls = 0;
	s.writer.attach_cuda(s.memory, bytes_each, 0, plain_call).reset();
	while (!plain_calls)
		s.writer.stat();
	CHECK(plain_calls == 1);
	CHECK(s.writer.attach_cuda(s.memory, bytes_each).size() == bytes_each);
	CODE(0, s.writer.attach_cuda(s.memory, bytes_each, code));
	CODE(0, s.writer.attach_cuda(s.memory, bytes_each, XMEM_MEMORY_READERS, code));
	s.writer.reset();
	CHECK(plain_calls == 1);
}

TEST(cuda_memory_that_is_refused_is_not_given_back)
{
	attach_scene s;
	told last;
	int here = 0;

	THROWS(EMEDIUMTYPE, s.writer.attach_cuda(&here, 1));
	THROWS(EMEDIUMTYPE, s.writer.attach_cuda(&here, 1, 0, moved(last)));
	CODE(EMEDIUMTYPE, s.writer.attach_cuda(&here, 1, 0, moved(last), code));
	CODE(EINVAL, s.writer.attach_cuda(nullptr, 1, 0, counting(last), code));
	CODE(EINVAL, s.writer.attach_cuda(s.memory, 1, 1u << 31, code));
	CODE(ERANGE, s.writer.attach_cuda(s.memory, std::size_t{1} << 40, 0, moved(last), code));
	s.writer.reset();
	CHECK(last.calls == 0 && last.alive == 0);
}

/* The exception has the library's sentence. The end of the callable does not replace it. */
TEST(cuda_memory_that_is_refused_hides_no_error)
{
	attach_scene s;
	struct forgetful {
		explicit forgetful(int *it) : ends(it) {}
		forgetful(forgetful &&other) noexcept : ends(std::exchange(other.ends, nullptr)) {}
		~forgetful()
		{
			if (ends && ++*ends)
				xmem::clear_last_error();
		}
		void operator()() const noexcept {}
		int *ends;
	};
	std::string said;
	int ends = 0, here = 0;

	try {
		s.writer.attach_cuda(&here, 1, 0, forgetful(&ends));
	} catch (const xmem::error &error) {
		said = error.what();
	}
	CHECK(ends == 1 && said.find("attach_cuda") == 0);
}
