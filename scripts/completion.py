#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""completion.py bash|zsh|fish FILE: writes the completion of the tool xmem for a shell.

The tables of cli/xmem.c say which commands, options and arguments there are, so a new command needs
nothing here. An argument POOL is completed by what "xmem list" prints.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "cli/xmem.c"

# A row of each table: { "top", "[--once] [POOL]", "watch pools", top_more, 0, 1, "jio", cli_top },
# and { "interval", required_argument, NULL, 'i' },
COMMAND = re.compile(r'\{\s*"([a-z]+)",\s*"([^"]*)",\s*"([^"]*)",\s*\w+,\s*\w+,\s*\w+,'
                     r'\s*"(\w*)",\s*\w+\s*\}')
OPTION = re.compile(r"\{\s*\"([a-z0-9-]+)\",\s*(\w+)_argument,\s*NULL,\s*'(\w)'\s*\}")

# Arguments of options that are files. The others have no completion.
FILES = {"output"}

MADE = "# Made by scripts/completion.py from the tables of cli/xmem.c.\n"


class Command(NamedTuple):
    name: str
    meaning: str
    options: list[tuple[str, bool]]     # each with: does it take an argument?
    arguments: list[str]                # POOL, SLOT ...; a last "..." repeats the one before


def table(source: str, declaration: str) -> str:
    """The initialiser of an array."""
    found = re.search(re.escape(declaration) + r"\s*=\s*\{(.*?)\n\s*\};", source, re.DOTALL)
    if not found:
        sys.exit(f"completion.py: {SOURCE} has no {declaration}")
    return found[1]


def commands() -> list[Command]:
    source = SOURCE.read_text()
    rows = table(source, "static const struct cli_command commands[]")
    known = table(source, "static const struct option known[]")
    options = {letter: (name, takes == "required")
               for name, takes, letter in OPTION.findall(known)}
    found = []
    for name, arguments, meaning, letters in COMMAND.findall(rows):
        words = re.sub(r"\[?-[^]\s]*( [A-Z]+(?=[\]\s]))?[^]\s]*\]?", "", arguments)
        found.append(Command(name, meaning, [options[letter] for letter in letters + "h"],
                             re.findall(r"[A-Z]+|\.\.\.", words.replace("[OPTION]...", ""))))
    if len(found) != len(re.findall(r"\{\s*\"", rows)) or not options:
        sys.exit(f"completion.py: a row of {SOURCE} is not understood")
    return found


# ---- bash ----

BASH = r"""
_xmem_pools()
{
	xmem list 2>/dev/null | awk 'NR > 1 { print $NF }'
}

# Completes the argument with that number, from 0 on, which has a name in "arguments".
_xmem_argument()
{
	local name=${arguments[$1]-}
	if [ "$name" = ... ] || { [ -z "$name" ] && [ "${arguments[*]: -1}" = ... ]; }; then
		name=${arguments[*]: -2:1}
	fi
	case $name in
	POOL) mapfile -t COMPREPLY < <(compgen -W "$(_xmem_pools)" -- "$cur") ;;
	COMMAND) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur") ;;
	FILE) _filedir ;;
	esac
	__ltrim_colon_completions "$cur"
}

_xmem()
{
	local cur prev words cword i count=0 options='' takes='' files='' arguments=()
	local commands='@COMMANDS@'
	_init_completion -n : || return
	if [ "$cword" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$cur")
		return
	fi
	case ${words[1]} in
@CASES@
	esac
	if [[ " $files " == *" $prev "* ]]; then
		_filedir
	elif [[ " $takes " == *" $prev "* ]]; then
		return
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	else
		for ((i = 2; i < cword; i++)); do
			[[ ${words[i]} == -* || " $takes " == *" ${words[i - 1]} "* ]] ||
				count=$((count + 1))
		done
		_xmem_argument $count
	fi
} &&
	complete -F _xmem xmem
"""


def long(options: list[str]) -> str:
    return " ".join(f"--{name}" for name in options)


def bash(found: list[Command]) -> str:
    cases = []
    for command in found:
        words = [f"options='{long([name for name, _ in command.options])}'"]
        takes = [name for name, takes in command.options if takes]
        words += [f"takes='{long(takes)}'"] if takes else []
        files = [name for name in takes if name in FILES]
        words += [f"files='{long(files)}'"] if files else []
        words += [f"arguments=({' '.join(command.arguments)})"] if command.arguments else []
        cases.append(f"\t{command.name})\n" + "".join(f"\t\t{word}\n" for word in words) + "\t\t;;")
    return (BASH.replace("@COMMANDS@", " ".join(command.name for command in found))
            .replace("@CASES@", "\n".join(cases)))


# ---- zsh ----

ZSH = r"""
_xmem_pools()
{
	local -a pools=(${(f)"$(xmem list 2>/dev/null | awk 'NR > 1 { print $NF }')"})
	compadd -a pools
}

_xmem_commands()
{
	local -a commands=(
@COMMANDS@
	)
	_describe command commands
}

_xmem()
{
	if (( CURRENT == 2 )); then
		_xmem_commands
		return
	fi
	shift words
	(( CURRENT-- ))
	case $words[1] in
@CASES@
	esac
}

_xmem "$@"
"""

ZSH_ACTIONS = {"POOL": "_xmem_pools", "COMMAND": "_xmem_commands", "FILE": "_files"}


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(found: list[Command]) -> str:
    cases = []
    for command in found:
        words = [f"--{name}" + (f":{name}:" + ("_files" if name in FILES else "") if takes else "")
                 for name, takes in command.options]
        for i, name in enumerate(command.arguments):
            if name != "...":
                many = command.arguments[i + 1:i + 2] == ["..."]
                words.append(f"{'*' if many else ''}:{name}:{ZSH_ACTIONS.get(name, ' ')}")
        cases.append(f"\t{command.name}) _arguments " + " ".join(map(quoted, words)) + " ;;")
    names = (f"\t\t{quoted(f'{command.name}:{command.meaning}')}" for command in found)
    return ZSH.replace("@COMMANDS@", "\n".join(names)).replace("@CASES@", "\n".join(cases))


# ---- fish ----

FISH = r"""
function __xmem_pools
	xmem list 2>/dev/null | awk 'NR > 1 { print $NF }'
end

complete -c xmem -f
complete -c xmem -n __fish_use_subcommand -l help
complete -c xmem -n __fish_use_subcommand -l version
"""


def fish(found: list[Command]) -> str:
    lines = []
    names = " ".join(command.name for command in found)
    for command in found:
        seen = f"complete -c xmem -n '__fish_seen_subcommand_from {command.name}'"
        lines.append(f"complete -c xmem -n __fish_use_subcommand -a {command.name} "
                     f"-d {quoted(command.meaning)}")
        for name, takes in command.options:
            lines.append(f"{seen} -l {name}" + (" -r" if takes else "")
                         + (" -F" if name in FILES else ""))
        for name in command.arguments:
            action = {"POOL": "-a '(__xmem_pools)'", "COMMAND": f"-a '{names}'", "FILE": "-F"}
            if name in action:
                lines.append(f"{seen} {action[name]}")
    return FISH + "\n".join(lines) + "\n"


SHELLS = {"bash": ("", bash), "zsh": ("#compdef xmem\n", zsh), "fish": ("", fish)}


def main() -> None:
    shell, file = sys.argv[1:]
    first, write = SHELLS[shell]
    Path(file).write_text(first + "# SPDX-License-Identifier: MIT\n" + MADE + write(commands()))


if __name__ == "__main__":
    main()
