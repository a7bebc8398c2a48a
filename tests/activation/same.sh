# SPDX-License-Identifier: MIT
# What the checks of this folder share: they count, and say what is another value than wanted.
passed=0 failed=0

# same WHAT GOT WANTED
same() {
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $1: got '$2', not '$3'"
	fi
}
