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

(* [now ()] does not wait, and [wait] waits for so many nanoseconds. The result is the handle, or
   the error if there is nothing in time. *)
let find call ~timeout now wait =
  let rec tried f =
    let r = f () in
    if not (is_null r) then Ok r
    else
      let code, message = M.last_error () in
      match code with
      | EAGAIN | ETIMEDOUT -> Result.Error { Error.code; call; message }
      | EINTR -> M.signals (); tried f
      | _ -> raise (Error.Error { code; call; message })
  in
  let left = M.left timeout in
  let holds () = M.live () > 0 in
  let ( ||| ) found next = match found with Ok _ -> found | Error _ -> next () in
  let if_holding step found = if holds () then found ||| step else found in
  let first = tried now |> if_holding (fun () -> minor (); tried now) in
  if timeout = 0L then first
  else
    first
    |> if_holding (fun () -> tried (fun () -> wait (min first_wait (left ()))))
    ||| fun () ->
    if holds () then full ();
    M.work_off ();
    tried (fun () -> wait (left ()))
