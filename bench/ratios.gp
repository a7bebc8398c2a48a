# SPDX-License-Identifier: MIT
# Draws ratios.tsv of `make bench`: how each ratio stands to its target, which is the line at 1.
# Columns: name, median, lower and upper quartile, target. A bar ends at median / target.
set terminal svg size 900,420 font "sans,12" background "#ffffff"
set output picture
set datafile separator "\t"
set title "Each ratio of one run against its target, the line at 1: shorter is better"
set logscale x
set xlabel "ratio / target (2 threads: target / ratio)"
set xrange [0.25:*]
set yrange [*:*] reverse
set ytics nomirror
set grid x
set key off
set style fill solid 0.7
set arrow from 1, graph 0 to 1, graph 1 nohead lw 2 lc rgb "#202020" front
least(name) = strstrt(name, "2 threads") > 0
stand(name, value, target) = least(name) ? target / value : value / target
set boxwidth 0.6
plot data using (0.25):0:(0.25):(stand(strcol(1), $2, $5)):($0 - 0.3):($0 + 0.3):\
	(stand(strcol(1), $2, $5) > 1 ? 0xc04020 : 0x308050):ytic(1) \
	with boxxyerror lc rgb variable, \
	data using (stand(strcol(1), $2, $5)):0:(sprintf("  %.3g", $2)) with labels left
