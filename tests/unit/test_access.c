// SPDX-License-Identifier: MIT
/*
 * Which users may join a pool: the table of owner, group, others and capabilities, masks of roles,
 * and the fields of the requests about access.
 */
#include "core/access.h"
#include "unit.h"

#define OWNER	1000u
#define OTHER	1001u
#define R	(1u << XMEM_ROLE_READER)
#define W	(1u << XMEM_ROLE_WRITER)

/* The roles that a mode gives to each class. A member that is the owner does not count as group. */
static const struct {
	u32 mode, owner, group, others;
} modes[] = {
	{ 0600, R | W, 0, 0 },
	{ 0400, R, 0, 0 },
	{ 0, 0, 0, 0 },
	{ 0640, R | W, R, 0 },
	{ 0660, R | W, R | W, 0 },
	{ 0644, R | W, R, R },
	{ 0664, R | W, R | W, R },
	{ 0666, R | W, R | W, R | W },
	{ 0606, R | W, 0, R | W },	/* the group is kept out, and so is the owner below */
	{ 0066, 0, R | W, R | W },
	{ 0006, 0, 0, R | W },
	{ 0060, 0, R | W, 0 },
	{ 0604, R | W, 0, R },
	{ XMEM_MODE_STRICT | 0640, R | W, R, 0 },
	{ XMEM_MODE_STRICT, 0, 0, 0 },
};

START_TEST(a_mode_lets_in_one_class_by_its_bits)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		struct xm_who owner = { .uid = OWNER }, member = { .uid = OTHER, .in_group = true };
		struct xm_who other = { .uid = OTHER }, root = { .uid = 0 };

		ck_assert_uint_eq(xm_access(OWNER, modes[i].mode, &owner), modes[i].owner);
		ck_assert_uint_eq(xm_access(OWNER, modes[i].mode, &member), modes[i].group);
		ck_assert_uint_eq(xm_access(OWNER, modes[i].mode, &other), modes[i].others);
		/* Membership in the group takes nothing from the owner, and gives it nothing. */
		owner.in_group = true;
		ck_assert_uint_eq(xm_access(OWNER, modes[i].mode, &owner), modes[i].owner);
		/* The uid 0 alone gives no right; a capability does. */
		ck_assert_uint_eq(xm_access(OWNER, modes[i].mode, &root), modes[i].others);
		root.override = owner.override = true;
		ck_assert_uint_eq(xm_access(OWNER, modes[i].mode, &root), R | W);
		ck_assert_uint_eq(xm_access(OWNER, modes[i].mode, &owner), R | W);
	}
}
END_TEST

START_TEST(modes_that_make_no_sense_are_EINVAL)
{
	static const u32 bad[] = { 0200, 0020, 0002, 0622, 0626, 0620, 0100, 0700, 02000, 04600,
				   XMEM_MODE_STRICT | 0602, 1u << 31, ~0u };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(modes); i++)
		ck_assert_int_eq(xm_mode_check(modes[i].mode), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_int_eq(xm_mode_check(bad[i]), -EINVAL);
}
END_TEST

/*
 * ENOENT hides a pool from a user without any role in it, but not an owner's pool from the owner.
 */
START_TEST(a_role_that_is_lacking_is_EACCES_and_none_is_ENOENT)
{
	static const struct {
		u32 roles, role;
		int stranger, owner;
	} table[] = {
		{ R | W, XMEM_ROLE_READER, 0, 0 },
		{ R | W, XMEM_ROLE_WRITER, 0, 0 },
		{ R, XMEM_ROLE_READER, 0, 0 },
		{ R, XMEM_ROLE_WRITER, -EACCES, -EACCES },
		{ W, XMEM_ROLE_READER, -EACCES, -EACCES },
		{ 0, XMEM_ROLE_READER, -ENOENT, -EACCES },
		{ 0, XMEM_ROLE_WRITER, -ENOENT, -EACCES },
		{ ~0u, 0, -EACCES, -EACCES },
		{ R, XMEM_ROLE_EITHER, 0, 0 },
		{ W, XMEM_ROLE_EITHER, 0, 0 },
		{ 0, XMEM_ROLE_EITHER, -ENOENT, -EACCES },
		{ ~0u, 4, -EACCES, -EACCES },
		{ ~0u, 33, -EACCES, -EACCES },	/* a shift by 33 is one by 1 */
		{ ~0u, ~0u, -EACCES, -EACCES },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		ck_assert_int_eq(xm_role_permit(table[i].roles, table[i].role, false),
				 table[i].stranger);
		ck_assert_int_eq(xm_role_permit(table[i].roles, table[i].role, true),
				 table[i].owner);
	}
}
END_TEST

/* A client that asks for either role, and may only read, is a reader. */
START_TEST(either_role_is_no_more_than_the_caller_has)
{
	static const struct {
		u32 roles, asked, role, wait_bound_ns;
	} table[] = {
		{ R | W, XMEM_ROLE_EITHER, XMEM_ROLE_EITHER, 5 },
		{ W, XMEM_ROLE_EITHER, XMEM_ROLE_EITHER, 5 },
		{ R, XMEM_ROLE_EITHER, XMEM_ROLE_READER, 0 },
		{ R, XMEM_ROLE_READER, XMEM_ROLE_READER, 5 },	/* which is refused */
		{ R | W, XMEM_ROLE_WRITER, XMEM_ROLE_WRITER, 5 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct xmem_join_request join = { .role = table[i].asked, .wait_bound_ns = 5 };

		xm_role_decide(table[i].roles, &join);
		ck_assert_uint_eq(join.role, table[i].role);
		ck_assert_uint_eq(join.wait_bound_ns, table[i].wait_bound_ns);
	}
}
END_TEST

/* If a pool's maker makes it again and the old mode is laxer than the new one, the call says so. */
START_TEST(a_pool_that_lets_in_more_than_is_asked_for_is_ERANGE)
{
	static const struct {
		u32 there, asked;
		int err;
	} table[] = {
		{ 0600, 0, 0 },		/* no mode accepts the pool as it is */
		{ XMEM_MODE_STRICT | 0666, 0, 0 },
		{ 0600, 0600, 0 },
		{ 0400, 0600, 0 },
		{ 0600, 0666, 0 },
		{ 0644, 0600, -ERANGE },
		{ 0600, 0400, -ERANGE },
		{ 0640, 0604, -ERANGE },
		{ 0660, 0640, -ERANGE },
		{ 0606, 0644, -ERANGE },
		{ XMEM_MODE_STRICT | 0600, 0600, 0 },
		{ 0600, XMEM_MODE_STRICT | 0600, -ERANGE },
		{ XMEM_MODE_STRICT | 0644, XMEM_MODE_STRICT | 0640, -ERANGE },
	};
	struct xmem_join_request join = { 0 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		join.mode = table[i].asked;
		ck_assert_int_eq(xm_access_fits(table[i].there, 5, &join), table[i].err);
	}
	/* Equal bits for another group let other users in. */
	join = (struct xmem_join_request){ .flags = XMEM_JOIN_GROUP, .gid = 6, .mode = 0640 };
	ck_assert_int_eq(xm_access_fits(0640, 5, &join), -ERANGE);
	ck_assert_int_eq(xm_access_fits(0640, 6, &join), 0);
	ck_assert_int_eq(xm_access_fits(0600, 5, &join), 0);
	join.mode = 0;
	ck_assert_int_eq(xm_access_fits(0640, 5, &join), 0);
}
END_TEST

START_TEST(a_mask_of_roles_never_grows)
{
	u32 has, wanted;

	for (has = 0; has <= 8; has++) {
		for (wanted = 0; wanted <= 8; wanted++) {
			u32 mask = POISON & 0xffff;
			int err = xm_roles_narrow(has & (R | W), wanted, &mask);

			if (wanted & ~(R | W))
				ck_assert_int_eq(err, -EINVAL);
			else if (wanted & ~has)
				ck_assert_int_eq(err, -EACCES);
			else
				ck_assert_int_eq(err, 0);
			if (err)
				ck_assert_uint_eq(mask, POISON & 0xffff);
			else
				ck_assert_uint_eq(mask, wanted ? wanted : has & (R | W));
		}
	}
}
END_TEST

static int join_with(u32 flags, u32 owner_uid, u32 gid, u32 mode)
{
	struct xmem_join_request join = {
		.flags = flags, .role = XMEM_ROLE_READER, .name = "n", .owner_uid = owner_uid,
		.gid = gid, .mode = mode,
	};

	return xm_join_access_check(&join);
}

START_TEST(fields_of_a_join_need_their_flags)
{
	struct xmem_join_request join = { .role = XMEM_ROLE_READER };
	u32 role;

	ck_assert_int_eq(join_with(0, 0, 0, 0), 0);
	ck_assert_int_eq(join_with(0, 0, 0, 0640), 0);
	ck_assert_int_eq(join_with(XMEM_JOIN_OWNER, 7, 0, 0), 0);
	ck_assert_int_eq(join_with(XMEM_JOIN_OWNER, 0, 0, 0), 0);	/* root's */
	ck_assert_int_eq(join_with(XMEM_JOIN_GROUP, 0, 7, 0), 0);
	ck_assert_int_eq(join_with(0, 7, 0, 0), -EINVAL);
	ck_assert_int_eq(join_with(0, 0, 7, 0), -EINVAL);
	ck_assert_int_eq(join_with(0, 0, 0, 0620), -EINVAL);
	/* A descriptor's pool has its owner, group and mode. */
	ck_assert_int_eq(join_with(XMEM_JOIN_FD, 0, 0, 0), 0);
	ck_assert_int_eq(join_with(XMEM_JOIN_FD, 0, 0, 0600), -EINVAL);
	ck_assert_int_eq(join_with(XMEM_JOIN_FD | XMEM_JOIN_OWNER, 7, 0, 0), -EINVAL);
	ck_assert_int_eq(join_with(XMEM_JOIN_FD | XMEM_JOIN_GROUP, 0, 7, 0), -EINVAL);

	ck_assert_int_eq(xm_join_access_check(&join), 0);
	join.flags = XMEM_JOIN_OWNER;	/* an anonymous pool of another user */
	ck_assert_int_eq(xm_join_access_check(&join), -EINVAL);
	join.flags = 0;
	join.roles = R;
	ck_assert_int_eq(xm_join_access_check(&join), -EINVAL);
	join.roles = 0;
	for (role = 0; role < 40; role++) {
		join.role = role;
		ck_assert_int_eq(xm_join_access_check(&join),
				 role >= 1 && role <= 3 ? 0 : -EINVAL);
	}
}
END_TEST

START_TEST(fields_of_access_need_their_flags)
{
	struct xmem_access_request request = { .flags = 0 };

	ck_assert_int_eq(xm_access_check(&request), 0);	/* a question */
	request.mode = 0640;
	ck_assert_int_eq(xm_access_check(&request), -EINVAL);
	request.flags = XMEM_ACCESS_MODE;
	ck_assert_int_eq(xm_access_check(&request), 0);
	request.mode = 0622;
	ck_assert_int_eq(xm_access_check(&request), -EINVAL);
	request.mode = 0;
	ck_assert_int_eq(xm_access_check(&request), -EINVAL);
	request.flags = 0;
	request.gid = 5;
	ck_assert_int_eq(xm_access_check(&request), -EINVAL);
	request.flags = XMEM_ACCESS_GROUP;
	ck_assert_int_eq(xm_access_check(&request), 0);
	request.owner_uid = 5;
	ck_assert_int_eq(xm_access_check(&request), -EINVAL);
}
END_TEST

void access_tests(Suite *suite)
{
	TCase *tcase = tcase_create("access");

	tcase_add_test(tcase, a_mode_lets_in_one_class_by_its_bits);
	tcase_add_test(tcase, modes_that_make_no_sense_are_EINVAL);
	tcase_add_test(tcase, a_role_that_is_lacking_is_EACCES_and_none_is_ENOENT);
	tcase_add_test(tcase, either_role_is_no_more_than_the_caller_has);
	tcase_add_test(tcase, a_pool_that_lets_in_more_than_is_asked_for_is_ERANGE);
	tcase_add_test(tcase, a_mask_of_roles_never_grows);
	tcase_add_test(tcase, fields_of_a_join_need_their_flags);
	tcase_add_test(tcase, fields_of_access_need_their_flags);
	suite_add_tcase(suite, tcase);
}
