(* SPDX-License-Identifier: MIT *)
(* demo-histogram-ocaml: how often each luma value occurs, over all frames. It takes the place of
   demo-histogram in "make demo OCAML=1", obeys the director, and verifies each frame when it has
   received it and before it releases it. ../control.h and ../frame.h describe the messages and
   frames. *)
open Xmem

external checksum : Buffer.bytes -> int64 = "demo_checksum"

(* ---- the director *)

let say_ready = 1
let say_frame = 2
let say_holding = 3
let say_paused = 4
let say_done = 7
let say_error = 8
let tell_go = 9
let tell_hold = 10
let tell_pause = 11
let message_bytes = 240
let text_at = 40
let text_bytes = 200

type life = {
  director : Unix.file_descr option;
  mutable frames : int;
  mutable lost : int;
  mutable corrupt : int;
  mutable first : int;  (** the sequence of the first publication that can come *)
  mutable hold : bool;
}

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

(* The next thing told, or 0. The process ends with the director. *)
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

let obey life =
  let kind = told life ~wait:false in
  if kind = tell_hold then life.hold <- true
  else if kind = tell_pause then begin
    say life say_paused;
    while told life ~wait:true <> tell_go do () done
  end

(* ---- frames *)

let total = Array.make 256 0

(* The bytes of a frame: in place, or a copy of a frame on a GPU. *)
let contents buffer (metadata : Answers.Metadata.t) =
  match Constants.Storage.of_int metadata.storage with
  | Cuda ->
    Buffer.wait buffer;
    let copy = Bigarray.(Array1.create char c_layout (Buffer.size buffer)) in
    Buffer.copy_to_array (Bigarray.genarray_of_array1 copy) buffer;
    copy
  | _ -> Buffer.data buffer

let luma life buffer (metadata : Answers.Metadata.t) =
  let width = metadata.image_width and height = metadata.image_height in
  let format = Constants.Image_format.of_int metadata.image in
  match catch (fun () -> Metadata.image_bytes format ~width ~height) with
  | Ok bytes when format = I420 && bytes = Buffer.size buffer -> width * height
  | _ -> fail life "histogram: a publication is not a frame"

let count life from buffer =
  let { Answers.Buffer_info.sequence; _ } = Buffer.stat buffer in
  life.lost <- (Subscription.stat from).lost;
  if life.frames = 0 then life.first <- sequence - life.lost;
  if sequence <> life.first + life.frames + life.lost then
    fail life (Printf.sprintf "histogram: publication %d, with %d lost" sequence life.lost);
  life.frames <- life.frames + 1

let work life from buffer =
  count life from buffer;
  let metadata = Metadata.view buffer in
  let pixels = luma life buffer metadata in
  let frame = contents buffer metadata in
  let intact () = checksum frame = metadata.user.(0) in
  let first = intact () in
  for i = 0 to pixels - 1 do
    let value = Char.code (Bigarray.Array1.unsafe_get frame i) in
    total.(value) <- total.(value) + 1
  done;
  if life.hold then begin
    say life ~value:1 say_holding;
    while true do ignore (told life ~wait:true) done
  end;
  if not (first && intact ()) then life.corrupt <- life.corrupt + 1

(* Until the producer has ended and no frame is in flight. *)
let rec follow life from =
  obey life;
  match Subscription.receive ~timeout:0.02 from with
  | Some buffer ->
    Buffer.with_ buffer (work life from);
    say life say_frame;
    follow life from
  | None -> follow life from
  | exception Error { code = EPIPE; _ } -> ()

(* ---- the result *)

let percentile pixels share =
  let rec from value below =
    let below = below + total.(value) in
    if value = 255 || below * 100 >= pixels * share then value else from (value + 1) below
  in
  from 0 0

let result life =
  let pixels = Array.fold_left ( + ) 0 total in
  if pixels = 0 then fail life "histogram: no frame was received";
  let sum = ref 0 in
  Array.iteri (fun value times -> sum := !sum + (value * times)) total;
  Printf.sprintf "luma: mean %.1f, 5 %% below %d, 95 %% below %d"
    (float !sum /. float pixels)
    (percentile pixels 5) (percentile pixels 95)

let () =
  let argument i = if Array.length Sys.argv > i then Some Sys.argv.(i) else None in
  let name =
    match argument 1 with
    | Some name -> name
    | None -> prerr_endline "usage: demo-histogram-ocaml POOL [PUBLISHER FOLDER [SOCKET]]"; exit 2
  in
  let socket number : Unix.file_descr = Obj.magic (int_of_string number : int) in
  let life =
    { director = Option.map socket (argument 4); frames = 0; lost = 0; corrupt = 0; first = 0;
      hold = false }
  in
  Option.iter Unix.set_close_on_exec life.director;
  try
    let pool = Pool.open_ ~flags:Constants.Open.existing ~label:"histogram" name in
    let publisher = Option.map int_of_string (argument 2) in
    Subscription.with_ (Subscription.subscribe ~waits:true ?publisher ~timeout:30. pool)
    @@ fun from ->
    say life ~value:(Pool.client pool) say_ready;
    follow life from;
    life.lost <- (Subscription.stat from).lost;
    let text = result life in
    if life.director = None then
      Printf.printf "histogram: %d frames, %d lost, %d corrupt; %s\n" life.frames life.lost
        life.corrupt text;
    say life ~text say_done;
    if life.corrupt > 0 then exit 1
  with Error { call; message; _ } -> fail life (call ^ ": " ^ message)
