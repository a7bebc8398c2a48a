#!/bin/sh
# SPDX-License-Identifier: MIT
# with_domains.sh VERSION: a module that runs a function in two domains at once, for OCaml 5; for
# OCaml 4, in two threads.
case $1 in
4.*) make=Thread.create join=Thread.join ;;
*) make='(fun f i -> Domain.spawn (fun () -> f i))' join=Domain.join ;;
esac
echo "let both f = List.iter $join (List.init 2 (fun i -> $make f i))"
