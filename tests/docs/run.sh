#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the documentation site: it is built without a warning; its links lead to places that exist,
# and each public name has an entry (links.py); it has screenshots of xmem top and its pictures; and
# the tutorials are true, word for word (tutorial.py), with the files that `make install` installs.
#   tests/docs/run.sh [NAME...]
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

python=/usr/bin/python3		# Debian's, which has numpy
site=build/docs/html work=$PWD/build/docs/work
passed=0 failed=0
rm -rf "$work"
mkdir -p "$work/pages"

says() { echo "  $*"; return 1; }

site_is_built_without_a_warning() { make -s docs; }

# Links, anchors and names.
links_lead_to_places() { $python -B tests/docs/links.py $site; }

# Planted: a link to a page, a link to a place, and a name are lost.
lost_places_are_noticed() {
	local plant lost
	for plant in 's/href="howto.html"/href="howt.html"/g' 's/id="order"/id="ordre"/' \
			's/id="c.xmem_publish"/id="c.xmem_publsh"/'; do
		rm -rf "$work/site"
		cp -r $site "$work/site"
		sed -i "$plant" "$work/site/index.html" "$work/site/cuda.html" \
			"$work/site/api/xmem_publish.html"
		lost=$($python -B tests/docs/links.py "$work/site") &&
			{ says "$plant is not noticed"; return; }
		grep -q ^FAIL <<<"$lost" || { says "$plant: $lost"; return; }
	done
}

# The screens are of this build: 24 rows, with the rates of a pool that hands frames over.
screenshots_are_in_the_site() {
	local name page=$site/watch.html
	for name in pools clients slots; do
		[ "$(grep -c '' build/docs/src/screens/$name.html)" = 26 ] ||
			says "$name has not 24 rows" || return
	done
	[ "$(grep -c '^xmem top  daemon' $page)" = 3 ] && grep -q 'WAITS FOR' $page &&
		grep -qE '^(</span>)? +[0-9]+ +[1-9][0-9]* .* camera$' $page &&
		grep -qE ' 0 live .* cam, viewer, logger' $page || says "$page lacks a screen"
}

pictures_are_in_the_site() {
	[ "$(grep -c '<object data="_images/graphviz-.*svg' $site/pictures.html)" = 3 ] ||
		says 'pictures.html has not three pictures'
}

# A program, and the output that the page shows, are changed by one letter; a line is left out.
lies_of_a_tutorial_are_noticed() {
	local plant
	for plant in 's/^2| 1920 x 1080/2| 1921 x 1080/' 's/puts("Type/puts("type/' \
			'/^1| It is published/d'; do
		sed "$plant" docs/site/tutorial-c.md >"$work/lie.md"
		tutorial "$work/lie.md" >"$work/said" && { says "$plant is not noticed"; return; }
		grep -q ^FAIL "$work/said" || { cat "$work/said"; says "$plant"; return; }
	done
}

tutorials_are_true() { tutorial docs/site/tutorial-c.md docs/site/tutorial-python.md; }

# tutorial PAGE...: in a folder of its own, with an installed xmem and a daemon of its own
tutorial() {
	local root=$work/root/usr/local folder=$work/pages
	[ -d "$root" ] || make -s install DESTDIR="$work/root" >/dev/null || return
	rm -rf "$folder"
	mkdir "$folder"
	XMEM_BACKEND=daemon XMEM_SOCKET=xmem-docs-$$ XMEM_QUIET=1 \
		XMEM_DAEMON=$root/libexec/xmem/xmemd PATH=$root/bin:/usr/bin:$PATH \
		LD_LIBRARY_PATH=$root/lib PKG_CONFIG_PATH=$root/lib/pkgconfig \
		PKG_CONFIG_SYSROOT_DIR=$work/root PYTHONPATH=$PWD/build/release/python \
		$python -B tests/docs/tutorial.py "$folder" "$@"
}

tests=(site_is_built_without_a_warning links_lead_to_places lost_places_are_noticed
	screenshots_are_in_the_site pictures_are_in_the_site tutorials_are_true
	lies_of_a_tutorial_are_noticed)
for name in "${@:-${tests[@]}}"; do
	if "$name"; then
		echo "ok $name"
		passed=$((passed + 1))
	else
		echo "FAIL $name"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
