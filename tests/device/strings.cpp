// SPDX-License-Identifier: MIT
/* The operations on strings: as Python's str has them, with null operands, and without memory. */
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <sstream>

#include "test.hpp"

/* ---- Operations by their names in cases.py ---- */

/* An operand or a result, which is a string or a number. */
struct value {
	bool is_number, is_null_string;
	i32 number;
	std::string string;
};

static value number(i32 from)
{
	return { true, false, from, "" };
}

static value part_of(string_view from)
{
	return { false, is_null(from), 0, is_null(from) ? "" : text(from) };
}

/* Takes the reference. */
static value made(managed_string from)
{
	value result = part_of(view_of(from));

	CHECK(is_null(from) || from.meminfo->refct == 1);
	decref(from.meminfo);
	return result;
}

static value read(const std::string &word)
{
	value result = { word[0] == 'i', word[0] == '-', 0, "" };

	if (result.is_number)
		result.number = std::stoi(word.substr(1));
	for (std::size_t i = 1; word[0] == 's' && i + 1 < word.size(); i += 2)
		result.string += static_cast<char>(std::stoi(word.substr(i, 2), nullptr, 16));
	return result;
}

static bool operator==(const value &left, const value &right)
{
	return left.is_number == right.is_number && left.is_null_string == right.is_null_string &&
		left.number == right.number && left.string == right.string;
}

/* The operands of a call. A text is in memory of exactly its size, which ASan watches. */
struct operands {
	std::vector<value> all;
	arena *memory;
	mutable std::vector<std::vector<char>> texts;

	operands(const std::vector<value> &all_, arena *memory_) : all(all_), memory(memory_) {}

	string_view text(std::size_t i) const
	{
		const std::string &from = all.at(i).string;

		if (all.at(i).is_null_string)
			return null_view();
		if (from.empty())
			return view_of("", 0);
		texts.emplace_back(from.begin(), from.end());
		return view_of(texts.back().data(), static_cast<i32>(from.size()));
	}
	i32 number(std::size_t i) const { return all.at(i).number; }
};

static i32 sign(i32 of)
{
	return (of > 0) - (of < 0);
}

using operation = std::function<value(const operands &)>;

static const std::map<std::string, operation> operations = {
	{ "copy", [](const operands &o) { return made(copy(o.memory, o.text(0))); } },
	{ "length", [](const operands &o) { return number(length(o.text(0))); } },
	{ "upper", [](const operands &o) { return made(upper(o.memory, o.text(0))); } },
	{ "lower", [](const operands &o) { return made(lower(o.memory, o.text(0))); } },
	{ "concat", [](const operands &o) {
		return made(concat(o.memory, o.text(0), o.text(1)));
	} },
	{ "compare", [](const operands &o) {
		return number(sign(compare(o.text(0), o.text(1))));
	} },
	{ "equal", [](const operands &o) {
		CHECK((o.text(0) == o.text(1)) != (o.text(0) != o.text(1)));
		return number(o.text(0) == o.text(1));
	} },
	{ "startswith", [](const operands &o) {
		return number(startswith(o.text(0), o.text(1)));
	} },
	{ "endswith", [](const operands &o) { return number(endswith(o.text(0), o.text(1))); } },
	{ "find", [](const operands &o) { return number(find(o.text(0), o.text(1))); } },
	{ "rfind", [](const operands &o) { return number(rfind(o.text(0), o.text(1))); } },
	{ "count", [](const operands &o) { return number(count(o.text(0), o.text(1))); } },
	{ "slice", [](const operands &o) {
		return part_of(slice(o.text(0), o.number(1), o.number(2)));
	} },
	{ "slice_from", [](const operands &o) { return part_of(slice(o.text(0), o.number(1))); } },
	{ "strip", [](const operands &o) { return part_of(strip(o.text(0))); } },
	{ "lstrip", [](const operands &o) { return part_of(lstrip(o.text(0))); } },
	{ "rstrip", [](const operands &o) { return part_of(rstrip(o.text(0))); } },
	{ "strip_set", [](const operands &o) { return part_of(strip(o.text(0), o.text(1))); } },
	{ "lstrip_set", [](const operands &o) { return part_of(lstrip(o.text(0), o.text(1))); } },
	{ "rstrip_set", [](const operands &o) { return part_of(rstrip(o.text(0), o.text(1))); } },
	{ "replace", [](const operands &o) {
		return made(replace(o.memory, o.text(0), o.text(1), o.text(2)));
	} },
	{ "replace_most", [](const operands &o) {
		return made(replace(o.memory, o.text(0), o.text(1), o.text(2), o.number(3)));
	} },
};

/* A line of cases.py */
static void try_case(arena *memory, const std::string &line)
{
	std::istringstream words(line);
	operands given({}, memory);
	std::string name, word;
	value wanted;

	words >> name;
	while (words >> word)
		given.all.push_back(read(word));
	wanted = given.all.back();
	given.all.pop_back();
	if (!(operations.at(name)(given) == wanted))
		FAIL(line);
}

/* ---- Tests ---- */

TEST(DEVICE_strings_are_those_of_python)
{
	const u64 cases = rows_of_a_test() / 20;
	const char *given = std::getenv("XMEM_TEST_SEED");
	std::string seed = given ? given : std::to_string(std::random_device()());
	std::string command = "python3 tests/device/cases.py " + std::to_string(cases) + " " + seed;
	std::string line;
	std::FILE *from = popen(command.c_str(), "r");
	own_arena memory(1 << 20);
	u64 lines = 0;

	CHECK(from);
	std::printf("strings: XMEM_TEST_SEED=%s\n", seed.c_str());
	for (int c; (c = std::getc(from)) != EOF;)
		if (c != '\n') {
			line += static_cast<char>(c);
		} else {
			try_case(memory, line);
			line.clear();
			lines++;
		}
	SAME(pclose(from), 0);
	CHECK(lines >= cases + 0x3100);
	NOTHING_LEFT(memory);
	SAME(arena_count(memory).failed, 0);
}

/* Operations that make strings, with operands for them. */
static const std::vector<std::pair<std::string, std::vector<value>>> makers = {
	{ "copy", { read("s6162") } },
	{ "upper", { read("s6162") } },
	{ "lower", { read("s6162") } },
	{ "concat", { read("s6162"), read("s63") } },
	{ "replace", { read("s6162"), read("s62"), read("s636465") } },
};

TEST(DEVICE_a_string_without_memory_is_null)
{
	for (const auto &maker : makers) {
		own_arena full(sizeof(arena) + 32), narrow(sizeof(arena) + 48);
		const operation &call = operations.at(maker.first);

		CHECK(allocate(full, 16));
		CHECK(call({ maker.second, full }).is_null_string);
		SAME(arena_count(full).failed, 1);
		SAME(arena_count(full).made, 1);
		/* There is room for the characters, and none for the count. */
		CHECK(call({ maker.second, narrow }).is_null_string);
		SAME(arena_count(narrow).failed, 1);
		SAME(arena_count(narrow).made, 1);
		NOTHING_LEFT(narrow);
	}
}

TEST(DEVICE_operations_make_strings_without_an_arena)
{
	for (const auto &maker : makers)
		CHECK(!operations.at(maker.first)(operands(maker.second, nullptr)).is_null_string);
}

TEST(DEVICE_a_string_of_2_gib_is_refused)
{
	const i32 most = MOST_BYTES;
	std::string many(65536, 'a');
	own_arena memory(1 << 20);
	managed_string (*const make)(arena *, u64) = make_string;

	/* Nothing is behind these views: a refusal comes before the first character. */
	CHECK(is_null(concat(memory, view_of("a", most), view_of("b", 1))));
	CHECK(is_null(concat(memory, view_of("a", most), view_of("b", most))));
	CHECK(is_null(make(memory, u64(most) + 1)));
	CHECK(is_null(make(nullptr, u64(most) + 1)));
	CHECK(is_null(replace(memory, view(many), view("a"), view(many))));
	CHECK(is_null(replace(memory, view(many), view(""), view(many))));
	SAME(arena_count(memory).failed, 5);
	SAME(arena_count(memory).made, 0);
}

/* At the end of the longest view there is an empty string, and no byte follows it. */
TEST(DEVICE_the_last_place_in_a_string_of_2_gib_is_the_last)
{
	string_view longest = view_of("a", 0x7fffffff), empty = view_of("", 0);

	SAME(after_place(longest, empty, longest.bytes), -1);
	SAME(next_place(longest, empty, -1), -1);
}

/* The fields of a view that cuDF has for a place that is known already. */
TEST(DEVICE_a_known_place_in_a_string_shortens_the_way_to_a_character)
{
	const std::string characters = "a\xc3\xa9" "b\xe4\xb8\xad" "c";
	string_view plain = view(characters), known = plain;

	known.char_pos = 2;
	known.byte_pos = 3;
	for (i32 begin = -6; begin <= 6; begin++)
		for (i32 end = -6; end <= 6; end++)
			SAME(text(slice(known, begin, end)), text(slice(plain, begin, end)));
	known.byte_pos = 100;		/* it is beyond the end, so it is not used */
	SAME(text(slice(known, 3)), "\xe4\xb8\xad" "c");
}

TEST(DEVICE_bytes_that_are_no_utf8_do_no_harm)
{
	std::mt19937 random(1);
	own_arena memory(1 << 20);

	for (u64 i = 0; i < rows_of_a_test() / 100; i++) {
		std::vector<value> given(3, part_of(null_view()));

		for (value &one : given) {
			one.is_null_string = false;
			for (u64 n = random() % 9; n; n--)
				one.string += static_cast<char>(random() % 2 ? 0x80 + random() % 128
									     : 'a' + random() % 2);
		}
		given.push_back(number(i32(random() % 9) - 2));
		for (const auto &one : operations)
			if (one.first == "slice")
				one.second({ { given[0], given[3], given[3] }, memory });
			else if (one.first == "slice_from")
				one.second({ { given[0], given[3] }, memory });
			else
				one.second({ given, memory });
	}
	NOTHING_LEFT(memory);
}
