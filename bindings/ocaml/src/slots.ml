(* SPDX-License-Identifier: MIT *)
(* The policy for slots. The collector weighs bytes against its own heap, and does not know that a
   pool has few slots. So a call that finds no buffer, and is about to sleep, first lets the
   collector find the handles that the program has dropped without releasing them: their slots are
   what this process, or a writer in another one, waits for. *)
open Ctypes
module M = Managed

let minors = Atomic.make 0
let fulls = Atomic.make 0

let minor () =
  Atomic.incr minors;
  Gc.minor ()

let full () =
  Atomic.incr fulls;
  Gc.full_major ()

let settle () =
  if M.live () > 0 then full ();
  M.work_off ()

(* How long a wait lasts before a full collection, which costs much with a large heap. *)
let first_wait = 10_000_000L

(* [now ()] does not wait, and [wait] waits for so many nanoseconds. The result is NULL, with the
   thread's last error, if there is nothing in time. *)
let find call ~timeout now wait =
  let rec tried f =
    let r = f () in
    if not (is_null r) then Some r
    else
      match M.last_error () with
      | Constants.Code.(EAGAIN | ETIMEDOUT), _ -> None
      | EINTR, _ -> M.signals (); tried f
      | code, message -> raise (Error.Error { code; call; message })
  in
  let ( ||| ) found next = match found with Some _ -> found | None -> next () in
  let holds () = M.live () > 0 in
  tried now
  ||| (fun () -> if holds () then (minor (); tried now) else None)
  ||| fun () ->
  if timeout = 0L then None
  else
    let left = M.left timeout in
    (if holds () then tried (fun () -> wait (min first_wait (left ()))) else None)
    ||| fun () ->
    if holds () then full ();
    tried (fun () -> wait (left ()))
