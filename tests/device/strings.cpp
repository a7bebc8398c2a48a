// SPDX-License-Identifier: MIT
/* The operations on strings: as Python's str has them, with null operands, and without memory. */
#include <cstdio>
#include <functional>
#include <map>
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

/* The operands of a call. */
struct operands {
	std::vector<value> all;
	arena *memory;

	string_view text(std::size_t i) const
	{
		return all.at(i).is_null_string ? null_view() : view(all.at(i).string);
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

/* A line of cases.py. An operand is in memory of exactly its size, which ASan watches. */
static void try_case(arena *memory, const std::string &line)
{
	std::istringstream words(line);
	operands given = { {}, memory };
	std::string name, word;
	value wanted;

	words >> name;
	while (words >> word)
		given.all.push_back(read(word));
	for (value &one : given.all)
		one.string.shrink_to_fit();
	wanted = given.all.back();
	given.all.pop_back();
	if (!(operations.at(name)(given) == wanted))
		FAIL(line);
}

/* ---- Tests ---- */

TEST(DEVICE_strings_are_those_of_python)
{
	const u64 cases = rows_of_a_test() / 20;
	std::string command = "python3 tests/device/cases.py " + std::to_string(cases), line;
	std::FILE *from = popen(command.c_str(), "r");
	own_arena memory(1 << 20);
	u64 lines = 0;

	CHECK(from);
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
