(* SPDX-License-Identifier: MIT *)
let () =
  Alcotest.run "xmem" [ ("handles", Handles_tests.tests); ("views", Views_tests.tests);
      ("slots", Slots_tests.tests) ]
