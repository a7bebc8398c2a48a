#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Reads how kernels are compiled for each GPU, without one:

    tests/device/ptx.py              the instructions of incref and decref; does everything compile?
    tests/device/ptx.py registers    registers and spilled bytes of the kernels, which may only fall
    tests/device/ptx.py registers --write     puts them into registers.expected

The compilers are clang, which needs no toolkit of CUDA, nvcc, and NVRTC, where they are. ptxas
comes with nvcc. The last line is "N passed, N failed, N skipped".
"""
import ctypes
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(HERE, 'registers.expected')
OLDEST = 70		# compute capability times ten; acq_rel needs it
COUNTED = 75, 80, 90, 100, 120		# the GPUs whose registers are counted
COUNTS = dict(passed=0, failed=0, skipped=0)


class Failure(Exception):
    pass


def run(*command):
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
    if done.returncode:
        raise Failure(f'{command[0]}: {(done.stderr or done.stdout).strip()}')
    return done.stdout + done.stderr


def check(name, call, *arguments):
    try:
        result = call(*arguments)
    except Failure as why:
        print(f'FAIL {name}: {str(why)[:1000]}')
        COUNTS['failed'] += 1
        return None
    COUNTS['passed'] += 1
    return result


def skip(name, why):
    print(f'SKIP {name}: {why}')
    COUNTS['skipped'] += 1


# ---- compilers: each has a name, the GPUs that it knows, and a function from source to PTX

class Clang:
    name = 'clang'

    def __init__(self, program):
        self.program = program
        self.gpus = [70, 80, 86]	# those that clang 14 of Debian 12 knows

    def ptx(self, source, gpu):
        return run(self.program, '-x', 'cuda', '--cuda-device-only', f'--cuda-gpu-arch=sm_{gpu}',
                   '-nocudainc', '-nocudalib', '-Xclang', '-target-feature', '-Xclang', '+ptx63',
                   '-Wall', '-Wextra', '-Werror', '-Wno-unknown-cuda-version', '-std=c++14',
                   '-O2', '-Iinclude', '-I.', '-S', source, '-o', '-')


class Nvcc:
    def __init__(self, program):
        self.program = program
        version = re.search(r'release (\d+\.\d+)', run(program, '--version')).group(1)
        self.name = f'nvcc-{version}'
        known = re.findall(r'compute_(\d+)\n', run(program, '--list-gpu-arch') + '\n')
        self.gpus = [gpu for gpu in map(int, known) if gpu >= OLDEST]

    def ptx(self, source, gpu):
        with tempfile.TemporaryDirectory() as folder:
            to = os.path.join(folder, 'out.ptx')
            run(self.program, '-ptx', '-std=c++14', f'-arch=compute_{gpu}', '-Werror',
                'all-warnings', '-Iinclude', '-I.', source, '-o', to)
            with open(to, encoding='ascii') as file:
                return file.read()

    def registers(self, source, gpu):
        """{function: (registers or None, spilled bytes)}"""
        with tempfile.TemporaryDirectory() as folder:
            said = run(self.program, '-cubin', '-std=c++14', f'-arch=sm_{gpu}', '-Xptxas', '-v',
                       '-Iinclude', '-I.', source, '-o', os.path.join(folder, 'out.cubin'))
        found, name = {}, None
        for line in said.splitlines():
            if match := re.search(r'Function properties for (\S+)', line):
                name = match.group(1)
            elif match := re.search(r'(\d+) bytes spill stores, (\d+) bytes spill loads', line):
                found.setdefault(name, [0, 0])[1] = max(map(int, match.groups()))
            elif match := re.search(r'Used (\d+) registers', line):
                found[name][0] = int(match.group(1))
        return found


class Nvrtc:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        version = ctypes.c_int(), ctypes.c_int()
        self.call('nvrtcVersion', *map(ctypes.byref, version))
        self.name = f'nvrtc-{version[0].value}.{version[1].value}'
        count = ctypes.c_int()
        self.call('nvrtcGetNumSupportedArchs', ctypes.byref(count))
        gpus = (ctypes.c_int * count.value)()
        self.call('nvrtcGetSupportedArchs', gpus)
        self.gpus = [gpu for gpu in gpus if gpu >= OLDEST]

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result:
            raise Failure(f'{name} returns {result}')

    def text(self, program, what):
        size = ctypes.c_size_t()
        self.call(f'nvrtcGet{what}Size', program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self.call(f'nvrtcGet{what}', program, text)
        return text.value.decode()

    def ptx(self, source, gpu):
        options = [f'--gpu-architecture=compute_{gpu}'.encode(), b'--std=c++14',
                   f'-I{TOP}/include'.encode(), f'-I{TOP}'.encode()]
        program = ctypes.c_void_p()
        with open(os.path.join(TOP, source), 'rb') as file:
            self.call('nvrtcCreateProgram', ctypes.byref(program), file.read(), source.encode(),
                      0, None, None)
        try:
            self.call('nvrtcCompileProgram', program, len(options),
                      (ctypes.c_char_p * len(options))(*options))
        except Failure as why:
            raise Failure(f'{why}: {self.text(program, "ProgramLog").strip()}') from None
        return self.text(program, 'PTX')


def find_nvcc():
    return shutil.which('nvcc') or shutil.which('nvcc', path='/usr/local/cuda/bin')


def compilers():
    clang = shutil.which(os.environ.get('CXX_2', 'clang++'))
    if clang:
        yield Clang(clang)
    else:
        skip('clang', 'it is not installed')
    if find_nvcc():
        yield Nvcc(find_nvcc())
    else:
        skip('nvcc', 'it is not installed')
    places = ['/usr/local/cuda/lib64', *(f'{folder}/nvidia/*/lib' for folder in sys.path)]
    libraries = [path for place in places for path in glob.glob(f'{place}/libnvrtc.so.*[0-9]')]
    if libraries:
        yield Nvrtc(min(libraries, key=len))
    else:
        skip('nvrtc', 'no libnvrtc.so is in a toolkit or among the packages of this Python')


# ---- instructions

ACCESS = re.compile(r'(?:@!?%p\d+ )?((?:ld|st|atom|red)\.\S+)\s+(.*)\[(%rd\d+)(?:\+(-?\d+))?\](.*)')


def body_of(ptx, name):
    """The instructions of a kernel. Functions that it calls are not inlined into them."""
    match = re.search(r'\.entry ' + name + r'\(.*?\n\{(.*?)\n\}', ptx, re.S)
    if not match:
        raise Failure(f'there is no kernel {name}')
    return [line.strip() for line in re.sub(r'\{|\}|//.*', '', match.group(1)).split('\n')]


def first_parameter(lines, name):
    """{register: the offset from the first parameter that it has}"""
    known = {f'[{name}_param_0]': 0}
    for line in lines:
        match = re.match(r'(?:ld\.param|cvta\.to\.global|cvta\.global|mov|add)\.[sub]64\s+'
                         r'(%rd\d+), ([^,]*)(?:, (-?\d+))?;', line)
        if match and match.group(2) in known:
            known[match.group(1)] = known[match.group(2)] + int(match.group(3) or 0)
    return known


def accesses(ptx, name):
    """The accesses to the MemInfo in a kernel, in order: (instruction, offset, operand)"""
    lines = body_of(ptx, name)
    known = first_parameter(lines, name)
    found = []
    for line in lines:
        match = ACCESS.match(line)
        if match and match.group(3) in known:
            offset = known[match.group(3)] + int(match.group(4) or 0)
            found.append((match.group(1), offset, match.group(5).strip(', ;')))
    return found, lines


def incref_is_one_atomic(ptx):
    found, _ = accesses(ptx, 'xd_incref')
    if [one[:2] for one in found] != [('atom.relaxed.gpu.add.u64', 0)]:
        raise Failure(f'incref accesses the MemInfo by {found}')


def decref_is_one_atomic(ptx):
    found, lines = accesses(ptx, 'xd_decref')
    counts = [one for one in found if one[1] == 0]
    if [one[0] for one in counts] != ['atom.acq_rel.gpu.add.u64']:
        raise Failure(f'decref accesses the count by {counts}')
    if found[0] != counts[0]:
        raise Failure(f'decref accesses {found[0]} before the count')
    if not {8, 16, 24} <= {one[1] for one in found}:	# size may come with data
        raise Failure(f'decref does not read the destructor and its arguments: {found}')
    operand = counts[0][2]
    if operand != '-1' and not any(re.match(rf'mov\.[bus]64\s+{operand}, -1;', line)
                                   for line in lines):
        raise Failure(f'decref does not add -1: {counts[0]}')


def needs_nothing(ptx):
    """No function of a runtime library but those of the GPU's own heap"""
    names = set(re.findall(r'\.extern \.func .*?(\w+)\s*\n?\(', ptx)) - {'malloc', 'free'}
    if names:
        raise Failure(f'it needs {sorted(names)}')


def instructions():
    for compiler in compilers():
        for gpu in compiler.gpus:
            name = f'{compiler.name}_{gpu}'
            ptx = check(f'{name}_compiles', compiler.ptx, 'tests/device/decref.cu', gpu)
            if ptx:
                check(f'{name}_incref_is_one_atomic', incref_is_one_atomic, ptx)
                check(f'{name}_decref_is_one_atomic', decref_is_one_atomic, ptx)
                check(f'{name}_needs_nothing', needs_nothing, ptx)
        # All operations of strings take long to compile: once for each compiler.
        check(f'{compiler.name}_compiles_strings', compiler.ptx, 'tests/device/kernels.cu',
              compiler.gpus[0])


# ---- registers

def read_table():
    with open(TABLE, encoding='ascii') as file:
        rows = [line.split() for line in file if line.strip() and line[0] != '#']
    return {(row[0], int(row[1]), row[2]): (int(row[3]), int(row[4])) for row in rows}


def compare(rows, table):
    for key, got in rows.items():
        wanted = table.get(key)
        name = '_'.join(map(str, key))
        if wanted is None:
            raise Failure(f'{name} is not in registers.expected')
        if got[0] > wanted[0] or got[1] > wanted[1]:
            raise Failure(f'{name} has (registers, spilled bytes) {got}, and before {wanted}')
        if got != wanted:
            print(f'{name} has fallen to {got} from {wanted}: ptx.py registers --write')


def registers(write):
    if not find_nvcc():
        skip('registers', 'nvcc, with ptxas, is not installed')
        return
    nvcc, table, all_rows = Nvcc(find_nvcc()), read_table(), {}
    if not write and not any(key[0] == nvcc.name for key in table):
        skip('registers', f'registers.expected has no numbers of {nvcc.name}')
        return
    print('compiler GPU function registers spilled-bytes')
    for gpu in sorted(set(nvcc.gpus) & set(COUNTED)):
        found = check(f'{nvcc.name}_{gpu}_compiles', nvcc.registers, 'tests/device/kernels.cu', gpu)
        rows = {(nvcc.name, gpu, name): tuple(numbers) for name, numbers in (found or {}).items()}
        for key, numbers in sorted(rows.items()):
            print(*key, *numbers)
        all_rows.update(rows)
        if not write:
            check(f'{nvcc.name}_{gpu}_registers_only_fall', compare, rows, table)
    if write:
        with open(TABLE, 'w', encoding='ascii') as file:
            file.write('# The most registers and spilled bytes of kernels: tests/device/ptx.py.\n')
            for key, numbers in sorted(all_rows.items()):
                print(*key, *numbers, file=file)


if sys.argv[1:2] == ['registers']:
    registers('--write' in sys.argv)
else:
    instructions()
print(', '.join(f'{count} {what}' for what, count in COUNTS.items()))
sys.exit(COUNTS['failed'] != 0)
