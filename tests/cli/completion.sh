#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the completion that scripts/completion.py makes for three shells: with real bash and fish,
# and with zsh as far as it reads the file. Do they offer the commands that the tool has, the
# options that each command takes, and the pools that there are?
#   tests/cli/completion.sh [FOLDER]     FOLDER is build/release
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

programs=$(realpath "${1:-build/release}")
export XMEM_BACKEND=daemon XMEM_SOCKET=xmem-completion-$$ XMEM_DAEMON=$programs/xmemd
export PATH=$programs:$PATH HOME=/nonexistent
passed=0 failed=0
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

says() { echo "  $*"; return 1; }
same() { [ "$1" = "$2" ] || says "wanted $1" $'\n'"  got    $2"; }

# bash WORD...: what bash offers for the last word, sorted, on one line.
in_bash() {
	# shellcheck disable=SC2016
	bash --norc --noprofile -c '
		. /usr/share/bash-completion/bash_completion
		. "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
		COMP_TYPE=9 COMP_KEY=9
		_xmem
		printf "%s\n" "${COMPREPLY[@]}"' "$made/bash" "$@" | sort | paste -sd ' '
}

# in_fish LINE: what fish offers at its end.
in_fish() { fish -N -c "source '$made/fish'; complete -C '$1'" | cut -f 1 | sort | paste -sd ' '; }

commands() { xmem help | sed -n 's/^  \([a-z]*\) .*/\1/p' | sort; }
options() { grep -oP '\{ "\K[a-z0-9-]+(?=", (no|required)_argument)' cli/xmem.c | sed 's/^/--/'; }

all_commands_are_offered() {
	local all
	all=$(commands | paste -sd ' ')
	same "$(printf '%s\n' --help --version $all | sort | paste -sd ' ')" "$(in_bash xmem '')" &&
		same "$all" "$(in_fish 'xmem ')" && same "$all" "$(in_bash xmem help '')" &&
		same 'claims clients' "$(in_bash xmem cl)"
}

# The tool itself refuses exactly the options that are not offered.
exactly_the_options_of_each_command() {
	local command option offered said
	[ "$(options | wc -l)" -ge 6 ] || says "only $(options)" || return
	for command in $(commands); do
		offered=$(in_bash xmem "$command" -)
		same "$offered" "$(in_fish "xmem $command --")" || return
		offered=" $offered "
		for option in $(options); do
			said=$(xmem "$command" "$option" 1 --help 2>&1)
			if [[ $said = *'there is no option'* ]]; then
				[[ $offered != *" $option "* ]] || says "$command $option"
			else
				[[ $offered = *" $option "* ]] || says "no $command $option"
			fi || return
		done
	done
}

# An argument of an option is no argument of the command, and a slot has no completion.
pools_are_offered() {
	local line
	coproc scene { cli-scene scene; }
	while read -r -t 600 -u "${scene[0]}" line; do
		[ "$line" != ready ] || break
	done
	same scene "$(in_bash xmem clients sc)" &&
		same scene "$(in_bash xmem top --interval 2 s)" &&
		same '' "$(in_bash xmem top --interval s)" &&
		same '' "$(in_bash xmem holders scene s)" && same '' "$(in_bash xmem list s)" &&
		same scene "$(in_fish 'xmem clients sc')"
	line=$?
	exec {scene[1]}>&-
	wait "$scene_PID"
	return $line
}

zsh_reads_it() {
	mkdir "$made/functions"
	cp "$made/zsh" "$made/functions/_xmem"
	zsh -n "$made/zsh" && same _xmem "$(zsh -f -c "fpath=($made/functions \$fpath)
		autoload -U compinit && compinit -D -u && print \$_comps[xmem]")"
}

for shell in bash zsh fish; do
	scripts/completion.py $shell "$made/$shell" || exit 1
done
for name in all_commands_are_offered exactly_the_options_of_each_command pools_are_offered \
	zsh_reads_it; do
	if "$name"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $name"
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
