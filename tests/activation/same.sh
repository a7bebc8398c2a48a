# SPDX-License-Identifier: MIT
# Shared by the checks of this folder: these functions count, and report unexpected values.
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
