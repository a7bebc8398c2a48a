(* SPDX-License-Identifier: MIT *)
(* The tests; with "--scene NAME POOL" one of the processes that they start. *)
let () =
  match Sys.argv with
  | [| _; "--scene"; name; pool |] -> (Hashtbl.find Waits_tests.scenes name) pool
  | _ ->
    (* Forks come first: OCaml 5 refuses them after there were domains. *)
    Alcotest.run "xmem"
      [
        ("waits", Waits_tests.tests);
        ("docs", Docs_tests.tests);
        ("handles", Handles_tests.tests);
        ("views", Views_tests.tests);
        ("slots", Slots_tests.tests);
        ("calls", Calls_tests.tests);
      ]
