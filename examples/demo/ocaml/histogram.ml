(* SPDX-License-Identifier: MIT *)
(* demo-histogram-ocaml: how often each luma value occurs, over all frames. It takes the place of
   demo-histogram in "make demo OCAML=1", obeys the director, and verifies each frame when it has
   received it and before it releases it. ../frame.h describes the frames. *)
open Xmem
open Common

let hold = ref false

let obey life =
  let kind = told life ~wait:false in
  if kind = tell_hold then hold := true
  else if kind = tell_pause then begin
    say life say_paused;
    ignore (await life [ tell_go ])
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
  let intact () = checksum frame (Bigarray.Array1.dim frame) = metadata.user.(0) in
  let first = intact () in
  for i = 0 to pixels - 1 do
    let value = Char.code (Bigarray.Array1.unsafe_get frame i) in
    total.(value) <- total.(value) + 1
  done;
  if !hold then begin
    say life ~value:1 say_holding;
    ignore (await life [])
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
  let name =
    match argument 1 with
    | Some name -> name
    | None -> prerr_endline "usage: demo-histogram-ocaml POOL [PUBLISHER FOLDER [SOCKET]]"; exit 2
  in
  let life = life (argument 4) in
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
