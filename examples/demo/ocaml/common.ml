(* SPDX-License-Identifier: MIT *)
(* The common part of the demo's programs in OCaml: the director's messages, which ../control.h
   describes, and the checksum of a frame. *)
open Xmem

external checksum : Buffer.bytes -> int -> int64 = "demo_checksum"
(** Of so many bytes from the start on, as ../frame.h has it. *)

let say_ready = 1
let say_frame = 2
let say_holding = 3
let say_paused = 4
let say_at_end = 5
let say_halfway = 6
let say_done = 7
let say_error = 8
let tell_go = 9
let tell_hold = 10
let tell_pause = 11
let tell_again = 12
let tell_finish = 13
let message_bytes = 240
let text_at = 40
let text_bytes = 200

type life = {
  director : Unix.file_descr option;
  mutable frames : int;
  mutable lost : int;
  mutable corrupt : int;
  mutable first : int;  (** the sequence of the first publication that can come *)
}

(** [argument]: the number of the director's socket. *)
let life argument =
  let socket number : Unix.file_descr = Obj.magic (int_of_string number : int) in
  let director = Option.map socket argument in
  Option.iter Unix.set_close_on_exec director;
  { director; frames = 0; lost = 0; corrupt = 0; first = 0 }

let argument i = if Array.length Sys.argv > i then Some Sys.argv.(i) else None

let say life ?(text = "") ?(value = 0) kind =
  let message = Bytes.make message_bytes '\000' in
  let put at number = Bytes.set_int64_le message at (Int64.of_int number) in
  let passed = if life.frames = 0 then 0 else life.first + life.frames + life.lost in
  Bytes.set_int32_le message 0 (Int32.of_int kind);
  Bytes.set_int32_le message 4 (Int32.of_int value);
  List.iter2 put [ 8; 16; 24; 32 ] [ life.frames; life.lost; life.corrupt; passed ];
  Bytes.blit_string text 0 message text_at (min (String.length text) (text_bytes - 1));
  match life.director with
  | None -> ()
  | Some socket ->
    if Unix.write socket message 0 message_bytes <> message_bytes then exit 1

let fail life text =
  if life.director = None then prerr_endline ("demo: " ^ text);
  say life ~text say_error;
  exit 1

(** The next thing told, or 0. The process ends with the director. *)
let told life ~wait =
  match life.director with
  | None -> 0
  | Some socket -> (
    match Unix.select [ socket ] [] [] (if wait then -1. else 0.) with
    | [], _, _ -> 0
    | _ ->
      let message = Bytes.create message_bytes in
      if Unix.read socket message 0 message_bytes <> message_bytes then exit 1;
      Int32.to_int (Bytes.get_int32_le message 0))

(** Wait until the director tells one of these. *)
let rec await life kinds =
  let kind = told life ~wait:true in
  if List.mem kind kinds then kind else await life kinds
