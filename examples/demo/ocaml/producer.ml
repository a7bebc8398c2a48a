(* SPDX-License-Identifier: MIT *)
(* demo-producer-ocaml: decodes a video into a pool of 8 buffers and publishes every frame. It takes
   the place of demo-producer in "make demo OCAML=1", and publishes that program's frames.
   ffmpeg's pipe is read straight into the buffer that will be published; with -g the buffers are
   on a GPU, to which each frame is copied. ../producer.c says what the director tells it. *)
open Xmem
open Common

external read : Unix.file_descr -> Buffer.bytes -> int -> int -> int = "demo_read"
external now_ns : unit -> int64 = "demo_now_ns"

let buffers = 8
let ahead_most = 2
let frames_least = 250
let keep_bytes = 256 lsl 20 (* of frames, at most, that ffmpeg repeats *)
let acquire_time = 60. (* by then something is wrong *)
let side_most = 32768
let device = 0

(* ---- the video *)

type video = {
  pid : int;
  pipe : Unix.file_descr;
  complaints : Unix.file_descr;  (** a file with its standard error *)
  width : int;
  height : int;
}

exception Broken of string

(* One line without its end; None: the pipe ended. *)
let read_line pipe =
  let byte = Bytes.create 1 in
  let line = Stdlib.Buffer.create 64 in
  let rec go () =
    if Unix.read pipe byte 0 1 = 0 then None
    else if Bytes.get byte 0 = '\n' then Some (Stdlib.Buffer.contents line)
    else begin
      Stdlib.Buffer.add_char line (Bytes.get byte 0);
      go ()
    end
  in
  go ()

let rec read_all pipe data at bytes =
  bytes = 0
  ||
  let got = read pipe data at bytes in
  got > 0 && read_all pipe data (at + got) (bytes - got)

let complain video =
  ignore (Unix.lseek video.complaints 0 SEEK_SET);
  let line = Option.value (read_line video.complaints) ~default:"ffmpeg stopped early" in
  raise (Broken ("cannot be decoded: " ^ line))

(* The pipe ended too early. *)
let broken video =
  ignore (Unix.waitpid [] video.pid);
  complain video

let close_files video =
  Unix.close video.pipe;
  Unix.close video.complaints

let close_video video =
  Unix.kill video.pid Sys.sigkill;
  ignore (Unix.waitpid [] video.pid);
  close_files video

(* An open file without a name. *)
let nameless () =
  let name = Filename.temp_file "demo" ".ffmpeg" in
  let file = Unix.openfile name [ O_RDWR; O_APPEND; O_CLOEXEC ] 0 in
  Unix.unlink name;
  file

let start_ffmpeg path filter =
  let arguments =
    [ "ffmpeg"; "-nostdin"; "-v"; "error"; "-protocol_whitelist"; "file"; "-i"; "file:" ^ path;
      "-map"; "0:V:0"; "-vf"; filter; "-vsync"; "passthrough"; "-pix_fmt"; "yuv420p"; "-f";
      "yuv4mpegpipe"; "pipe:1" ]
  in
  let complaints = nameless () and pipe, output = Unix.pipe ~cloexec:true () in
  let nothing = Unix.openfile "/dev/null" [ O_RDONLY; O_CLOEXEC ] 0 in
  let pid = Unix.create_process "ffmpeg" (Array.of_list arguments) nothing output complaints in
  Unix.close nothing;
  Unix.close output;
  { pid; pipe; complaints; width = 0; height = 0 }

(* ffmpeg says in its first line how large the pictures are. [repeat]: it keeps so many frames of
   the video, all of them, and shows them so many times. *)
let open_video ?repeat path =
  let filter =
    match repeat with
    | None -> "null"
    | Some (frames, times) -> Printf.sprintf "loop=loop=%d:size=%d" (times - 1) frames
  in
  let video = start_ffmpeg path filter in
  let take video word =
    let number () = int_of_string (String.sub word 1 (String.length word - 1)) in
    match word.[0] with
    | 'W' -> { video with width = number () }
    | 'H' -> { video with height = number () }
    | 'C' when String.length word < 4 || String.sub word 0 4 <> "C420" ->
      raise (Broken (Printf.sprintf "ffmpeg writes %s, not YUV 4:2:0" word))
    | _ -> video
  in
  match Option.map (String.split_on_char ' ') (read_line video.pipe) with
  | None -> broken video
  | Some ("YUV4MPEG2" :: words) -> List.fold_left take video (List.filter (( <> ) "") words)
  | Some _ -> raise (Broken "ffmpeg does not write YUV4MPEG2")

(* Is there another frame? false: the video is over, without any error, and closed. *)
let next_frame video =
  match read_line video.pipe with
  | Some line when String.length line >= 5 && String.sub line 0 5 = "FRAME" -> true
  | Some _ -> raise (Broken "ffmpeg does not write YUV4MPEG2")
  | None -> (
    match Unix.waitpid [] video.pid with
    | _, WEXITED 0 -> close_files video; false
    | _ -> complain video)

(* ---- frames *)

type producer = {
  life : life;
  path : string;
  picture : int * int;  (** width and height *)
  bytes : int;  (** of a frame *)
  pool : Pool.t;
  stage : Buffer.bytes option;  (** the memory from which frames are copied to a GPU *)
  ahead : Buffer.t Queue.t;  (** decoded, not yet published *)
  mutable video : video option;
  mutable decoded : int;
  mutable passes : int;  (** times that the video was opened *)
  mutable pass_frames : int;  (** decoded since then *)
  mutable video_frames : int;  (** of the video; 0: not known yet *)
}

let frame_bytes life path { width; height; _ } =
  match catch (fun () -> Metadata.image_bytes I420 ~width ~height) with
  | Ok bytes when bytes > 0 && max width height <= side_most -> bytes
  | _ -> fail life (Printf.sprintf "%s: pictures of %d x %d" path width height)

(* The video, from its start if it is not open. All passes must have pictures of one size. If the
   video is so short that starting ffmpeg would take most of the time, ffmpeg repeats it. *)
let video it =
  match it.video with
  | Some video -> video
  | None ->
    let frames = it.video_frames in
    let times = if frames = 0 then 0 else (frames_least + frames - 1) / frames in
    let repeat =
      if times < 2 || frames * it.bytes > keep_bytes then None else Some (frames, times)
    in
    let video = open_video ?repeat it.path in
    if (video.width, video.height) <> it.picture then
      fail it.life (it.path ^ ": it has changed meanwhile");
    it.video <- Some video;
    it.passes <- it.passes + 1;
    it.pass_frames <- 0;
    video

let acquire it =
  match it.stage with
  | None -> Pool.acquire ~timeout:acquire_time it.pool it.bytes
  | Some _ -> Cuda.acquire ~timeout:acquire_time it.pool ~device it.bytes

(* Read so many bytes of the next frame into a buffer; returns where the CPU has them. *)
let fill it video buffer bytes =
  let data = match it.stage with None -> Buffer.data_mut buffer | Some stage -> stage in
  if not (read_all video.pipe data 0 bytes) then broken video;
  let upload stage =
    let part = Bigarray.Array1.sub stage 0 bytes in
    Buffer.copy_from_array (Bigarray.genarray_of_array1 part) buffer
  in
  Option.iter upload it.stage;
  data

let describe it buffer data =
  let width, height = it.picture in
  Metadata.describe_image buffer I420 ~width ~height;
  Metadata.describe_source buffer ~producer:"xmem demo, ffmpeg";
  Metadata.set_id buffer it.decoded;
  Metadata.set_user buffer [| checksum data it.bytes |]

let publish_oldest it =
  (* a buffer may be larger than a frame *)
  Buffer.publish ~timestamp_ns:(now_ns ()) ~length:it.bytes (Queue.pop it.ahead);
  it.life.frames <- it.life.frames + 1;
  say it.life say_frame;
  if told it.life ~wait:false = tell_pause then ignore (await it.life [ tell_go ])

(* Read the next frame of this pass. If that is one too many, publish the oldest. *)
let one_frame it video =
  if Queue.length it.ahead = ahead_most then publish_oldest it;
  let buffer = acquire it in
  describe it buffer (fill it video buffer it.bytes);
  Queue.push buffer it.ahead;
  it.decoded <- it.decoded + 1;
  it.pass_frames <- it.pass_frames + 1

(* Decode all frames of the video, or as many as are still missing. *)
let rec one_pass it =
  let video = video it in
  if next_frame video then begin
    one_frame it video;
    if it.passes = 1 || it.decoded <> frames_least then one_pass it
  end
  else begin
    it.video <- None;
    if it.pass_frames = 0 then fail it.life (it.path ^ ": there is no picture in it");
    if it.passes = 1 then it.video_frames <- it.pass_frames
  end

(* Until these are enough frames. The director may want the video once more. *)
let rec all_passes it =
  one_pass it;
  if it.decoded < frames_least then all_passes it
  else if it.life.director <> None then begin
    say it.life ~value:ahead_most say_at_end;
    if await it.life [ tell_again; tell_finish ] = tell_again then all_passes it
  end

(* Stop in the middle of a frame, for the director to kill. *)
let rec write_half_a_frame it =
  let video = video it in
  if next_frame video then begin
    ignore (fill it video (acquire it) (it.bytes / 2));
    say it.life say_halfway;
    ignore (await it.life [])
  end
  else begin
    it.video <- None;
    write_half_a_frame it
  end

(* ---- the program *)

(* Consumers are readers of the pool. On a GPU they could also write, so they must be trusted. *)
let open_pool life ~gpu ~wait_ms ~bytes name =
  let flags = if life.director = None then 0 else Constants.Open.existing in
  let wait_bound = float_of_string wait_ms /. 1000. in
  let pool = Pool.open_ ~writer:true ~flags ~wait_bound ~label:"producer" name in
  let flags, device =
    if gpu then (Some Constants.Memory.(cuda lor readers), Some device) else (None, None)
  in
  Pool.preallocate ?flags ?device pool ~bytes ~count:buffers;
  pool

let produce life ~gpu ~wait_ms name path =
  let video = open_video path in
  let bytes = frame_bytes life path video in
  Pool.with_ (open_pool life ~gpu ~wait_ms ~bytes name) @@ fun pool ->
  let stage = if gpu then Some Bigarray.(Array1.create char c_layout bytes) else None in
  let it =
    { life; path; picture = (video.width, video.height); bytes; pool; stage;
      ahead = Queue.create (); video = Some video; decoded = 0; passes = 1; pass_frames = 0;
      video_frames = 0 }
  in
  say life ~value:(Pool.client pool) say_ready;
  if life.director <> None then ignore (await life [ tell_go ]);
  all_passes it;
  while not (Queue.is_empty it.ahead) do publish_oldest it done;
  if life.director <> None then write_half_a_frame it;
  Option.iter close_video it.video

let () =
  let gpu = argument 1 = Some "-g" in
  let argument i = argument (if gpu then i + 1 else i) in
  match (argument 1, argument 2) with
  | Some name, Some path -> (
    let life = life (argument 4) in
    let wait_ms = Option.value (argument 3) ~default:"200" in
    try produce life ~gpu ~wait_ms name path with
    | Error { call; message; _ } -> fail life (call ^ ": " ^ message)
    | Broken why -> fail life (path ^ ": " ^ why)
    | Unix.Unix_error (code, call, _) ->
      fail life (Printf.sprintf "%s: %s: %s" path call (Unix.error_message code)))
  | _ ->
    prerr_endline "usage: demo-producer-ocaml [-g] POOL VIDEO [WAIT-MS [SOCKET]]";
    exit 2
