# SPDX-License-Identifier: MIT
# Draws peers-polling.tsv: one way between two polling processes, by the size of the message.
set terminal svg size 760,440 font "sans,12" background "#ffffff"
set output picture
set datafile separator "\t"
set datafile missing "-"
set title "One way between two processes that poll: median"
set logscale xy
set xlabel "bytes of the message"
set ylabel "ns"
set format y "10^{%L}"
set xtics ("1 KiB" 1024, "64 KiB" 65536, "1 MiB" 1048576, "16 MiB" 16777216, "64 MiB" 67108864)
set key outside right
set grid
plot for [n=2:*] data using 1:n with linespoints lw 2 title columnheader(n)
