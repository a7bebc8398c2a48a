#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Cases for strings.cpp, with the results of Python's str:

    tests/device/cases.py COUNT [SEED]

A line has an operation, its operands, and the result at last. A string is "s" and the hexadecimal
digits of its UTF-8, a null string is "-", and a number is "i" and its digits.
"""
import random
import sys

ALPHABETS = [
    'ab',
    'abcXYZ 019.,',
    'aB ß\u00e9\u00c9\u00ff\u00b5\u0130\u0131\u0149\u017f\u0178\u01c5',
    '\u03b1\u0391\u03a3\u03c2\u03c3\u0390\u03cc \u0430\u0410\u0451\u0401\u04cf\u0528',
    'x\u20ac\u4e2d\u6587\u1e9e\u2c6f\ua64b',
    'y\U0001f600\U00010428\U0010ffff\u00e9',
    ' \t\n\r\v\f\x1c\x1f\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000w',
]


def is_covered(code):
    """Does utf8.cuh change the case of characters here?"""
    return code < 0x180 or 0x386 <= code <= 0x3ce or 0x400 <= code <= 0x52f


def change(text, how):
    """Python's upper() or lower() where utf8.cuh has it: no other number of bytes."""
    def one(character):
        changed = how(character)
        same_size = len(changed.encode()) == len(character.encode())
        return changed if is_covered(ord(character)) and same_size else character
    return ''.join(one(character) for character in text)


def shown(value):
    if value is None:
        return '-'
    if isinstance(value, int):
        return f'i{int(value)}'
    return 's' + value.encode().hex()


def sign(left, right):
    return (left > right) - (left < right)


# An operation: the kinds of its operands (t: text, n: number), and Python's own.
OPERATIONS = {
    'copy': ('t', lambda a: a),
    'length': ('t', len),
    'upper': ('t', lambda a: change(a, str.upper)),
    'lower': ('t', lambda a: change(a, str.lower)),
    'concat': ('tt', lambda a, b: a + b),
    'compare': ('tt', sign),
    'equal': ('tt', lambda a, b: a == b),
    'startswith': ('tt', str.startswith),
    'endswith': ('tt', str.endswith),
    'find': ('tt', str.find),
    'rfind': ('tt', str.rfind),
    'count': ('tt', str.count),
    'slice': ('tnn', lambda a, b, c: a[b:c]),
    'slice_from': ('tn', lambda a, b: a[b:]),
    'strip': ('t', str.strip),
    'lstrip': ('t', str.lstrip),
    'rstrip': ('t', str.rstrip),
    'strip_set': ('tt', str.strip),
    'lstrip_set': ('tt', str.lstrip),
    'rstrip_set': ('tt', str.rstrip),
    'replace': ('ttt', str.replace),
    'replace_most': ('tttn', str.replace),
}

# The result if a string is null; for all others it is a null string.
OF_NULL = {
    'length': lambda a: 0,
    'compare': lambda a, b: sign(a is not None, b is not None),
    'equal': lambda a, b: a is None and b is None,
    'startswith': lambda a, b: 0, 'endswith': lambda a, b: 0,
    'find': lambda a, b: -1, 'rfind': lambda a, b: -1, 'count': lambda a, b: 0,
}


def put(name, *operands):
    how = OPERATIONS[name][1]
    if None in operands:
        how = OF_NULL.get(name, lambda *operands: None)
    print(name, *map(shown, operands), shown(how(*operands)))


def operands(kinds, alphabet):
    """Later strings are often parts of the first one, so that searches find something."""
    first = None
    for kind in kinds:
        if kind == 'n':
            yield random.choice([random.randint(-12, 12), 0, -2**31, 2**31 - 1])
            continue
        text = ''.join(random.choices(alphabet, k=random.choice([0, 1, 2, 3, 8, 30])))
        if first and random.random() < 0.6:
            begin = random.randrange(len(first))
            text = first[begin:begin + random.choice([0, 1, 1, 2, 5])]
        if first is None:
            first = text
        yield None if random.random() < 0.03 else text


def each_character():
    """The case of all characters, and white space."""
    for begin in range(0, 0x110000, 0x100):
        if not 0xd800 <= begin < 0xe000:
            text = ''.join(map(chr, range(begin, begin + 0x100)))
            put('upper', text)
            put('lower', text)
    for code in range(0x3100):
        put('strip', chr(code) + 'x' + chr(code))


def main():
    random.seed(sys.argv[2] if len(sys.argv) > 2 else None)
    each_character()
    for _ in range(int(sys.argv[1])):
        name = random.choice(list(OPERATIONS))
        put(name, *operands(OPERATIONS[name][0], random.choice(ALPHABETS)))


main()
