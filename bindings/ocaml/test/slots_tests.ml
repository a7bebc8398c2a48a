(* SPDX-License-Identifier: MIT *)
(* A program that releases nothing. Each variant hands over buffers of a pool with 8, and is judged
   by how often it finds no buffer, not by a time. *)
open Xmem
open Common
module M = Xmem__Managed
module Slots = Xmem__Slots

let count = scaled 10_000

(* Live strings, so that a full collection costs much: none may be needed. *)
let ballast n = List.init n string_of_int

type variant = {
  manage : M.block -> unit Ctypes.ptr -> M.buffer;
  retry : unit -> unit;
}

(* How often the variant found no buffer, even after its retry. *)
let starved { manage; retry } =
  let name = new_name () in
  Pool.with_ (open_writer name) @@ fun writer ->
  Pool.with_ (Pool.open_ name) @@ fun reader ->
  Subscription.with_ (Subscription.subscribe reader) @@ fun from ->
  let acquire () = M.Fast.acquire (M.raw writer) bytes 0L in
  let starved = ref 0 in
  for _ = 1 to 100 do
    let buffer = acquire () in
    let buffer = if Ctypes.is_null buffer then (retry (); acquire ()) else buffer in
    if Ctypes.is_null buffer then incr starved
    else begin
      assert (M.Fast.publish buffer Ctypes.(from_voidp M.D.xmem_publish_options null)
                Ctypes.(from_voidp uint64_t null) = 0);
      ignore (manage writer.pool (M.Fast.receive (M.raw from) 0L))
    end
  done;
  Gc.full_major ();
  Gc.full_major ();
  !starved

let finaliser_of_c block raw = M.with_gc M.Buffer ~parent:block raw

(* A raw handle, and a function of Gc.finalise that drops it. *)
let finaliser_of_ocaml block raw =
  let it = { (M.with_gc M.Pool Ctypes.null) with raw; pool = block } in
  let it = (Obj.magic it : M.buffer) in
  Gc.finalise (fun (it : M.buffer) -> M.Fast.release it.raw) it;
  it

let nothing () = ()

let a_finaliser_of_c_alone () =
  check_bool "starves" true (starved { manage = finaliser_of_c; retry = nothing } > 0)

let a_function_of_gc_finalise_alone () =
  check_bool "starves" true (starved { manage = finaliser_of_ocaml; retry = nothing } > 0)

let gc_finalise_with_a_minor_collection () =
  check_bool "starves" true (starved { manage = finaliser_of_ocaml; retry = Gc.minor } > 0)

let a_finaliser_of_c_with_a_minor_collection () =
  check_int "never" 0 (starved { manage = finaliser_of_c; retry = Gc.minor })

(* ---- the policy *)

let hand_over ?(timeout = 0.) writer from =
  Buffer.publish (Pool.acquire ~timeout writer bytes);
  ignore (take from)

let nothing_is_released ?(strings = 0) () =
  pair @@ fun writer from ->
  let live = ballast strings in
  let fulls = Atomic.get Slots.fulls and minors = Atomic.get Slots.minors in
  for _ = 1 to count do hand_over writer from done;
  check_int "full collections" 0 (Atomic.get Slots.fulls - fulls);
  let minors = Atomic.get Slots.minors - minors in
  check_bool "minor collections" true (minors > 0 && minors <= (count / (slots - 1)) + 1);
  check_int "strings" strings (List.length live)

(* The scoped way needs no collection at all. *)
let everything_is_released () =
  pair @@ fun writer from ->
  let minors = Atomic.get Slots.minors in
  for _ = 1 to count do
    Buffer.with_ (Pool.acquire ~timeout:0. writer bytes) Buffer.publish;
    Buffer.release (take from)
  done;
  check_int "minor collections" 0 (Atomic.get Slots.minors - minors)

let even_with_views () =
  pair @@ fun writer from ->
  let minors = Atomic.get Slots.minors in
  for _ = 1 to count do
    Buffer.with_ (Pool.acquire ~timeout:0. writer bytes) (fun buffer ->
        (Buffer.data_mut buffer).{0} <- 'x';
        Buffer.publish buffer);
    Buffer.with_ (take from) (fun buffer -> assert ((Buffer.data buffer).{0} = 'x'))
  done;
  check_int "minor collections" 0 (Atomic.get Slots.minors - minors)

(* Handles that a minor collection has promoted before they died need a full one. *)
let old_handles () =
  pair @@ fun writer from ->
  let old = Sys.opaque_identity (ref (List.init slots (fun _ -> put writer; take from))) in
  Gc.minor ();
  check_int "they are there" slots (List.length !old);
  old := [];
  let fulls = Atomic.get Slots.fulls in
  Buffer.release (Pool.acquire writer bytes);
  check_int "full collections" 1 (Atomic.get Slots.fulls - fulls)

(* With a timeout of 0 the program is asked to call settle. *)
let old_handles_of_an_event_loop () =
  pair @@ fun writer from ->
  let old = Sys.opaque_identity (ref (List.init slots (fun _ -> put writer; take from))) in
  Gc.minor ();
  fails EAGAIN (fun () -> Pool.acquire ~timeout:0. writer bytes);
  check_int "they are there" slots (List.length !old);
  old := [];
  settle ();
  Buffer.release (Pool.acquire ~timeout:0. writer bytes)

(* No error is made of handles that are in use. *)
let handles_in_use () =
  pair @@ fun writer from ->
  let mine = List.init slots (fun _ -> put writer; take from) in
  (* shorter and longer than the wait before the full collection *)
  fails ETIMEDOUT (fun () -> Pool.acquire ~timeout:0.005 writer bytes);
  fails ETIMEDOUT (fun () -> Pool.acquire ~timeout:0.02 writer bytes);
  fails EAGAIN (fun () -> Pool.acquire ~timeout:0. writer bytes);
  check_bool "nothing comes" true (Subscription.receive ~timeout:0.02 from = None);
  List.iter Buffer.release mine

let resident () =
  let file = open_in "/proc/self/statm" in
  let pages = Scanf.sscanf (input_line file) "%d %d" (fun _ resident -> resident) in
  close_in file;
  pages * 4

(* Memory rises at most by what OCaml 5 takes for its heap in the first million. *)
let memory_is_flat () =
  let most = if Sys.ocaml_version.[0] = '4' then 2_000 else 20_000 in
  pair @@ fun writer from ->
  let total = scaled 100_000 in
  for _ = 1 to total / 10 do hand_over writer from done;
  let before = resident () in
  for _ = total / 10 to total do hand_over writer from done;
  let more = resident () - before in
  if more > most then Alcotest.failf "%d KiB more" more

(* A collection of one domain promotes handles of the other, which then needs a full one. *)
let in_two_domains () =
  let counts = Array.make 2 0 in
  With_domains.both (fun i ->
      let name = Printf.sprintf "ocaml-both-%d-%d" (Unix.getpid ()) i in
      let writer = open_writer name in
      let from = Subscription.subscribe (Pool.open_ name) in
      for _ = 1 to scaled 2_000 do
        hand_over ~timeout:60. writer from;
        counts.(i) <- counts.(i) + 1
      done;
      Pool.close writer);
  Alcotest.(check (array int)) "hand-overs" (Array.make 2 (scaled 2_000)) counts;
  settle ();
  Gc.full_major ();
  check_int "left" 0 (handles ())

(* A writer that waits, and a consumer that forgets its buffers, in two domains, with a heap that
   makes each full collection expensive. *)
let no_deadlock_between_domains () =
  pair ~wait_bound:60. ~waits:true @@ fun writer from ->
  let live = ballast 3_000_000 in
  With_domains.both (function
    | 0 -> Waits_tests.forgetful from 1_000
    | _ -> Waits_tests.hand_over_all writer 1_000);
  check_int "strings" 3_000_000 (List.length live)

let tests =
  [
    test "a C finaliser alone starves" a_finaliser_of_c_alone;
    test "Gc.finalise alone starves" a_function_of_gc_finalise_alone;
    test "Gc.finalise with Gc.minor starves" gc_finalise_with_a_minor_collection;
    test "a C finaliser with Gc.minor does not" a_finaliser_of_c_with_a_minor_collection;
    test "nothing is released" (nothing_is_released ~strings:0);
    test "with 3 million live strings" (nothing_is_released ~strings:3_000_000);
    test "everything is released" everything_is_released;
    test "with views, too" even_with_views;
    test "old handles" old_handles;
    test "old handles of an event loop" old_handles_of_an_event_loop;
    test "handles in use" handles_in_use;
    test "memory is flat" memory_is_flat;
    test "in two domains" in_two_domains;
    test "no deadlock between domains" no_deadlock_between_domains;
  ]
