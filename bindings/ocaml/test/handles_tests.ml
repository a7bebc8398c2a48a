(* SPDX-License-Identifier: MIT *)
(* Raw and managed handles: the table of design document 002, and the ends of handles. *)
open Xmem
open Common
module M = Xmem__Managed

let writing writer = (Pool.stat writer).writing

(* "has finalizer?", "FFI output from C?": no function of C returns anything else *)
let raw_has_no_finaliser () =
  pair @@ fun writer _ ->
  let raw = M.Fast.acquire (M.raw writer) bytes 0L in
  Gc.full_major ();
  check_int "it is there" 1 (writing writer);
  check_int "the collector does not know it" 0 (handles ());
  M.Fast.release raw

let managed_has_a_finaliser () =
  pair @@ fun writer _ ->
  let raw = M.Fast.acquire (M.raw writer) bytes 0L in
  let it = M.with_gc M.Buffer raw in
  check_int "the collector knows it" 1 (handles ());
  Gc.full_major ();
  check_int "it is there while it is used" 1 (writing writer);
  (* "FFI input for C?": both *)
  check_int "given to C" bytes (M.Fast.size (M.raw it));
  M.keep it;
  Gc.full_major ();
  check_int "it is dropped" 0 (writing writer)

(* A finaliser of C runs after a minor collection. *)
let dropped_by_a_minor_collection () =
  pair @@ fun writer _ ->
  for _ = 1 to slots do ignore (Pool.acquire ~timeout:0. writer bytes) done;
  check_int "before" slots (handles ());
  Gc.minor ();
  check_int "after" 0 (handles ())

let published_is_gone () =
  pair @@ fun writer from ->
  let buffer = Pool.acquire writer bytes in
  Buffer.publish buffer;
  check_int "the handle is C's" 0 (handles ());
  fails EBADF (fun () -> Buffer.stat buffer);
  Buffer.release buffer;
  let mine = take from in
  Buffer.release buffer;
  check_int "still held" 1 (held writer);
  Buffer.release mine

let after_options_too () =
  pair @@ fun writer from ->
  let buffer = Pool.acquire writer bytes in
  let token = Buffer.publish_token ~length:100 buffer in
  check_int "the handle is C's" 0 (handles ());
  Buffer.with_ (take from) (fun buffer ->
      check_int "its length" 100 (Buffer.size buffer);
      check_bool "its token" true (Buffer.token buffer = token);
      (* a forwarded buffer, which this reader then is a writer for *)
      fails EBADF (fun () -> Buffer.release buffer; Buffer.publish buffer))

let kept () =
  pair @@ fun writer from ->
  Buffer.with_ (Pool.acquire writer bytes) @@ fun buffer ->
  Buffer.publish ~keep:true buffer;
  check_int "the handle stays" 1 (handles ());
  Buffer.with_ (take from) (fun other ->
      check_bool "one buffer" true (Buffer.token buffer = Buffer.token other))

let a_failed_call_leaves_the_handle () =
  pair @@ fun writer from ->
  Buffer.with_ (Pool.acquire writer bytes) (fun buffer ->
      fails ERANGE (fun () -> Buffer.publish ~length:(bytes + 1) buffer);
      check_int "it is there" 1 (handles ());
      Buffer.publish buffer);
  Buffer.with_ (take from) (fun buffer -> fails EPERM (fun () -> Buffer.data_mut buffer))

let forgotten () =
  pair @@ fun writer from ->
  put writer;
  let buffer = take from in
  let token = Buffer.token buffer in
  Claims.forget buffer;
  check_int "the handle is gone" 0 (handles ());
  check_int "its reference is a claim" 1 (Claims.count writer token);
  Buffer.with_ (Buffer.get writer token) ignore;
  check_int "it was taken" 0 (Claims.count writer token)

let released_at_once () =
  pair @@ fun writer from ->
  put writer;
  (try Buffer.with_ (take from) (fun _ -> raise Exit) with Exit -> ());
  check_int "after an exception" 0 (handles ());
  check_int "and its slot" 0 (held writer)

(* Handles of pools and subscriptions end in the call after the collection. *)
let pools_are_dropped () =
  let name = new_name () in
  Pool.with_ (open_writer name) @@ fun writer ->
  let clients () = (Pool.stat writer).clients in
  (fun () -> ignore (Subscription.subscribe (Pool.open_ name))) ();
  check_int "two" 2 (clients ());
  settle ();
  Gc.full_major ();
  settle ();
  check_int "one" 1 (clients ())

let a_subscription_keeps_its_pool () =
  let name = new_name () in
  Pool.with_ (open_writer name) @@ fun writer ->
  let from = (fun () -> Subscription.subscribe (Pool.open_ name)) () in
  Gc.full_major ();
  settle ();
  put writer;
  let buffer = take from in
  Subscription.close from;
  Gc.full_major ();
  settle ();
  (* the handle of the pool is open, or this would be EBADF *)
  Claims.offer buffer 1;
  Claims.drop writer (Buffer.token buffer);
  Buffer.release buffer

let no_slot_is_lost_by_exceptions () =
  pair @@ fun writer from ->
  let raised = ref 0 in
  for i = 1 to 5_000 do
    try
      let buffer = Pool.acquire ~timeout:0. writer bytes in
      if i mod 2 = 0 then raise Exit;
      Buffer.publish buffer;
      let buffer = take from in
      if i mod 3 = 0 then raise Exit;
      Buffer.with_ buffer (fun _ -> if i mod 5 = 0 then raise Exit)
    with Exit -> incr raised
  done;
  check_int "exceptions" 3_666 !raised;
  Gc.full_major ();
  check_int "held" 0 (held writer);
  check_slots writer

(* Several release one buffer, and the collector finds it meanwhile. *)
let released_by_all () =
  pair @@ fun writer from ->
  let round = Array.init slots (fun _ -> put writer; take from) in
  With_domains.both (fun _ ->
      Array.iter (fun buffer -> Buffer.release buffer; Gc.minor ()) round);
  check_int "held" 0 (held writer);
  check_int "live" 0 (handles ())

let tests =
  [
    test "a raw handle has no finaliser" raw_has_no_finaliser;
    test "a managed handle has one" managed_has_a_finaliser;
    test "a minor collection drops handles" dropped_by_a_minor_collection;
    test "a published handle is gone" published_is_gone;
    test "published with options, too" after_options_too;
    test "a kept handle stays" kept;
    test "a failed call leaves the handle" a_failed_call_leaves_the_handle;
    test "a forgotten handle is a claim" forgotten;
    test "an exception releases" released_at_once;
    test "the collector closes pools" pools_are_dropped;
    test "a subscription keeps its pool" a_subscription_keeps_its_pool;
    test "exceptions lose no slot" no_slot_is_lost_by_exceptions;
    test "released by all at once" released_by_all;
  ]
