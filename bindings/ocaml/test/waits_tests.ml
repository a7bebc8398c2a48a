(* SPDX-License-Identifier: MIT *)
(* Waiting: threads, signals, forks, other processes, and the ends of processes. *)
open Xmem
open Common

(* ---- other processes: this program, started again with the name of a scene *)

let scenes : (string, string -> unit) Hashtbl.t = Hashtbl.create 8
let scene name f = Hashtbl.add scenes name f

let start name pool =
  Unix.create_process Sys.executable_name
    [| Sys.executable_name; "--scene"; name; pool |]
    Unix.stdin Unix.stdout Unix.stderr

let ended pid =
  match snd (Unix.waitpid [] pid) with
  | Unix.WEXITED code -> code
  | WSIGNALED signal | WSTOPPED signal -> 1000 + signal

(* ---- the runtime lock *)

(* The other thread could not publish if the waiting one kept the lock. *)
let other_threads_run () =
  pair @@ fun writer from ->
  let got = ref None in
  let waiting = Thread.create (fun () -> got := Subscription.receive from) () in
  Thread.yield ();
  put ~value:'t' writer;
  Thread.join waiting;
  Buffer.with_ (Option.get !got) (fun buffer ->
      check_bool "contents" true ((Buffer.data buffer).{0} = 't'))

(* Nothing but the call refers to the subscription. *)
let a_waiting_subscription_lives () =
  let name = new_name () in
  Pool.with_ (open_writer name) @@ fun writer ->
  let started = Semaphore.Counting.make 0 and got = ref (Ok None) in
  let wait () =
    let from = Subscription.subscribe (Pool.open_ name) in
    Semaphore.Counting.release started;
    got := catch (fun () -> Subscription.receive from)
  in
  let waiting = Thread.create wait () in
  Semaphore.Counting.acquire started;
  for _ = 1 to 3 do Gc.full_major (); settle (); Thread.yield () done;
  put writer;
  Thread.join waiting;
  match !got with
  | Ok (Some buffer) -> Buffer.release buffer
  | Ok None -> Alcotest.fail "nothing"
  | Error { message; _ } -> Alcotest.fail message

let cancel_ends_a_wait () =
  let name = new_name () in
  Pool.with_ (open_writer name) @@ fun _ ->
  Pool.with_ (Pool.open_ name) @@ fun reader ->
  Subscription.with_ (Subscription.subscribe reader) @@ fun from ->
  let result = ref (Ok None) in
  let wait () = result := catch (fun () -> Subscription.receive from) in
  let waiting = Thread.create wait () in
  Thread.yield ();
  Pool.cancel reader;
  Thread.join waiting;
  match !result with
  | Error { code = ECANCELED; _ } -> ()
  | _ -> Alcotest.fail "it was not cancelled"

(* ---- signals *)

exception Rang

let on_alarm f wait =
  let before = Sys.signal Sys.sigalrm (Signal_handle (fun _ -> f ())) in
  let stop () =
    ignore (Unix.setitimer ITIMER_REAL { it_interval = 0.; it_value = 0. });
    Sys.set_signal Sys.sigalrm before
  in
  (* It rings again and again, because the first can come before the wait. *)
  ignore (Unix.setitimer ITIMER_REAL { it_interval = 0.02; it_value = 0.02 });
  Fun.protect ~finally:stop wait

let an_exception_of_a_signal_ends_a_wait () =
  pair @@ fun _ from ->
  match on_alarm (fun () -> raise Rang) (fun () -> Subscription.receive from) with
  | _ -> Alcotest.fail "it has received"
  | exception Rang -> ()

let a_wait_goes_on_after_a_signal () =
  pair @@ fun writer from ->
  let rang = ref 0 in
  let ring () =
    incr rang;
    if !rang = 2 then put ~value:'s' writer
  in
  let buffer = on_alarm ring (fun () -> Subscription.receive from) in
  Buffer.with_ (Option.get buffer) (fun buffer ->
      check_bool "contents" true ((Buffer.data buffer).{0} = 's'));
  check_bool "rang" true (!rang >= 2)

let signals_lengthen_no_wait () =
  pair @@ fun _ from ->
  check_bool "nothing" true
    (on_alarm ignore (fun () -> Subscription.receive ~timeout:0.1 from) = None)

external ring : unit -> unit = "xmem_test_ring"

(* The signal comes when C has the buffer, and OCaml does not have it yet. *)
let no_handle_is_lost_by_a_signal () =
  pair @@ fun writer from ->
  let before = Sys.signal Sys.sigusr1 (Signal_handle (fun _ -> raise Rang)) in
  let rings f =
    ring ();
    match f () with _ -> Alcotest.fail "it did not ring" | exception Rang -> ()
  in
  for _ = 1 to 2 * slots do
    rings (fun () -> Pool.acquire ~timeout:0. writer bytes);
    put writer;
    rings (fun () -> Subscription.receive ~timeout:0. from)
  done;
  Sys.set_signal Sys.sigusr1 before;
  (* the function of a signal can also run when the handle is the collector's *)
  Gc.full_major ();
  check_int "held" 0 (held writer);
  check_slots writer

(* ---- a writer that waits, and a consumer that forgets its buffers *)

(* The writer waits for this subscriber, whose dead handles have all buffers. The subscriber would
   sleep for ever, and the writer starve, if receive did not collect first. *)
let forgetful from n =
  for _ = 1 to n do
    match Subscription.receive from with
    | Some buffer -> ignore (Sys.opaque_identity buffer)
    | None -> assert false
  done

let hand_over_all writer n =
  for _ = 1 to n do
    let buffer = Pool.acquire writer bytes in
    Buffer.publish ~timeout:60. buffer
  done

let no_deadlock_in_one_process () =
  pair ~wait_bound:60. ~waits:true @@ fun writer from ->
  let consumer = Thread.create (fun () -> forgetful from 1_000) () in
  hand_over_all writer 1_000;
  Thread.join consumer

let () =
  scene "forgetful" @@ fun name ->
  Pool.with_ (Pool.open_ name) @@ fun reader ->
  Subscription.with_ (Subscription.subscribe ~waits:true reader) @@ fun from ->
  forgetful from 1_000

let no_deadlock_in_two_processes () =
  let name = new_name () in
  Pool.with_ (open_writer ~wait_bound:60. name) @@ fun writer ->
  let consumer = start "forgetful" name in
  ignore (Pool.wait_subscribers writer 1);
  hand_over_all writer 1_000;
  check_int "the consumer's end" 0 (ended consumer)

(* ---- ends of processes *)

let () =
  scene "ends" @@ fun name ->
  let reader = Pool.open_ name in
  let from = Subscription.subscribe ~flags:Constants.Subscribe.lasts ~history:2 reader in
  let first = take from and second = take from in
  let view = Buffer.data first in
  at_exit (fun () ->
      assert (view.{0} = 'x');
      Buffer.release first);
  ignore (Sys.opaque_identity second);
  exit 7

let buffers_come_back_at_exit () =
  let name = new_name () in
  Pool.with_ (Pool.open_ ~writer:true ~keep:4 name) @@ fun writer ->
  Pool.preallocate writer ~bytes ~count:slots;
  put writer;
  put writer;
  check_int "its end" 7 (ended (start "ends" name));
  (* The daemon notices the end a moment later than waitpid. *)
  let all = List.init slots (fun _ -> Pool.acquire ~timeout:60. writer bytes) in
  check_int "held" 0 (held writer);
  List.iter Buffer.release all

(* In a child, finalisers run for handles that are the parent's. *)
let a_child_drops_nothing () =
  pair @@ fun writer from ->
  put ~value:'f' writer;
  let buffer = take from in
  match Unix.fork () with
  | 0 ->
    (* no at_exit: that would run the rest of the tests' *)
    Unix._exit
      (match Buffer.stat buffer with
      | _ -> 1
      | exception Error { code = ECHILD; _ } ->
        Buffer.release buffer;
        Gc.full_major ();
        settle ();
        0
      | exception _ -> 2)
  | child ->
    check_int "the child" 0 (ended child);
    check_int "held" 1 (held writer);
    check_bool "contents" true ((Buffer.data buffer).{0} = 'f');
    Buffer.release buffer

let a_child_joins_anew () =
  pair @@ fun writer _ ->
  match Unix.fork () with
  | 0 ->
    Unix._exit
      (try
         Pool.with_ (Pool.reopen writer) @@ fun mine ->
         Pool.with_ (Pool.reopen mine) @@ fun reader ->
         let from = Subscription.subscribe reader in
         Pool.preallocate mine ~bytes ~count:2;
         put mine;
         Buffer.release (take from);
         0
       with problem -> prerr_endline (Printexc.to_string problem); 1)
  | child -> check_int "the child" 0 (ended child)

let all_writers_have_ended () =
  let name = new_name () in
  Pool.with_ (Pool.open_ name) @@ fun reader ->
  let writer = open_writer name in
  Subscription.with_ (Subscription.subscribe reader) @@ fun from ->
  for _ = 1 to 3 do put writer done;
  Pool.close writer;
  let got = ref 0 in
  Subscription.iter (fun _ -> incr got) from;
  check_int "received" 3 !got;
  fails EPIPE (fun () -> Subscription.receive from)

let tests =
  [
    test "other threads run" other_threads_run;
    test "a waiting subscription lives" a_waiting_subscription_lives;
    test "cancel ends a wait" cancel_ends_a_wait;
    test "an exception of a signal ends a wait" an_exception_of_a_signal_ends_a_wait;
    test "a wait goes on after a signal" a_wait_goes_on_after_a_signal;
    test "signals lengthen no wait" signals_lengthen_no_wait;
    test "no handle is lost by a signal" no_handle_is_lost_by_a_signal;
    test "no deadlock in one process" no_deadlock_in_one_process;
    test "no deadlock in two processes" no_deadlock_in_two_processes;
    test "buffers come back at exit" buffers_come_back_at_exit;
    test "a child drops nothing" a_child_drops_nothing;
    test "a child joins anew" a_child_joins_anew;
    test "all writers have ended" all_writers_have_ended;
  ]
