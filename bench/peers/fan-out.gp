# SPDX-License-Identifier: MIT
# Draws peers-fan-out.tsv: from the loan until the last of n sleeping subscribers has the message.
set terminal svg size 760,440 font "sans,12" background "#ffffff"
set output picture
set datafile separator "\t"
set datafile missing "-"
set title "1 KiB to n subscribers that sleep, until the last one has it: median"
set logscale xy 2
set logscale y 10
set xlabel "subscribers"
set ylabel "ns"
set format y "10^{%L}"
set key outside right
set grid
plot for [n=2:*] data using 1:n with linespoints lw 2 title columnheader(n)
