(* SPDX-License-Identifier: MIT *)
(* The pools that most tests use, and counts of their slots. *)
open Xmem

let slots = 8
let bytes = 4096
let number = ref 0

(* How many times a loop of a long run is repeated: percent. *)
let scaled n =
  match Sys.getenv_opt "XMEM_TEST_SCALE" with
  | Some percent -> n * int_of_string percent / 100
  | None -> n

let new_name () =
  incr number;
  Printf.sprintf "ocaml-%d-%d" (Unix.getpid ()) !number

let open_writer ?wait_bound name =
  let writer = Pool.open_ ~writer:true ?wait_bound name in
  Pool.preallocate writer ~bytes ~count:slots;
  writer

(* A writer with 8 buffers, and a subscription of another client. *)
let pair ?wait_bound ?waits f =
  let name = new_name () in
  Pool.with_ (open_writer ?wait_bound name) @@ fun writer ->
  Pool.with_ (Pool.open_ name) @@ fun reader ->
  Subscription.with_ (Subscription.subscribe ?waits reader) @@ fun from ->
  let result = f writer from in
  Gc.full_major ();
  Alcotest.(check int) "buffers left" 0 (handles ());
  result

let put ?(value = 'x') writer =
  Buffer.with_ (Pool.acquire ~timeout:0. writer bytes) @@ fun buffer ->
  Bigarray.Array1.fill (Buffer.data_mut buffer) value;
  Buffer.publish buffer

let take from =
  match Subscription.receive ~timeout:0. from with
  | Some buffer -> buffer
  | None -> Alcotest.fail "nothing was received"

let held writer = (Pool.stat writer).held

(* No slot is lost: all can be acquired. *)
let check_slots writer =
  List.iter Buffer.release (List.init slots (fun _ -> Pool.acquire ~timeout:0. writer bytes))

let fails code f =
  match f () with
  | _ -> Alcotest.fail "it did not fail"
  | exception Error error -> Alcotest.(check int) error.message (Code.to_int code) (Code.to_int error.code)

let check_int = Alcotest.(check int)
let check_bool = Alcotest.(check bool)
let test name f = Alcotest.test_case name `Quick f
