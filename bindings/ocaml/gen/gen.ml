(* SPDX-License-Identifier: MIT *)
(* The second step of generation: ctypes makes stubs in C and in OCaml of the descriptions.
   "gen fast" makes those that keep the runtime lock, "gen slow" those that release it. *)
module D = Xmem_descriptions.Descriptions

let into file write =
  let channel = open_out file in
  let formatter = Format.formatter_of_out_channel channel in
  write formatter;
  Format.pp_print_flush formatter ();
  close_out channel

(* mlvalues.h has to precede threads.h. Each handle that is made is noted (managed.c): an exception
   of a signal's function can come before OCaml has it. *)
let head =
  "#include <caml/mlvalues.h>\n#include <caml/threads.h>\n#include <xmem.h>\n\
   void *xmem_ml_note(int kind, void *handle);\n"
  ^ String.concat ""
      (List.map
         (fun (name, kind) ->
           Printf.sprintf "#define %s(...) xmem_ml_note(%d, %s(__VA_ARGS__))\n" name kind name)
         D.makers)

let make name concurrency (bindings : (module Cstubs.BINDINGS)) =
  let prefix = "xmem_" ^ name in
  into (name ^ "_stubs.c") (fun f ->
      Format.pp_print_string f head;
      Cstubs.write_c ~concurrency f ~prefix bindings);
  into (name ^ "_made.ml") (fun f -> Cstubs.write_ml ~concurrency f ~prefix bindings)

let () =
  match Sys.argv.(1) with
  | "fast" -> make "fast" Cstubs.sequential (module D.Fast)
  | _ -> make "slow" Cstubs.unlocked (module D.Slow)
