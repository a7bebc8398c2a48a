(* SPDX-License-Identifier: MIT *)
(* Each module's functions: answers, descriptions, callbacks, memory of GPUs, event loops. *)
open Xmem
open Common

let contains part whole =
  let n = String.length part in
  let rec from i = i + n <= String.length whole && (String.sub whole i n = part || from (i + 1)) in
  from 0

(* ---- errors *)

let errors_say_what_is_wrong () =
  match Pool.open_ ~flags:Constants.Open.existing "no-such-pool" with
  | _ -> Alcotest.fail "it was opened"
  | exception (Error { code; call; message } as problem) ->
    check_bool "code" true (code = ENOENT);
    Alcotest.(check string) "call" "pool_open" call;
    check_bool message true (contains "no-such-pool" message);
    check_bool "printed" true (contains message (Printexc.to_string problem))

let results () =
  check_bool "a value" true (catch (fun () -> 3) = Ok 3);
  (match catch (fun () -> Pool.open_ "/bad/") with
  | Error { code = EINVAL; _ } -> ()
  | _ -> Alcotest.fail "no EINVAL");
  Alcotest.check_raises "others pass" Exit (fun () -> ignore (catch (fun () -> raise Exit)))

let codes_are_numbers () =
  List.iter
    (fun number -> check_int "there and back" number (Code.to_int (Code.of_int number)))
    (List.init 140 succ);
  check_bool "without a name" true (Code.of_int 9999 = Other 9999)

(* ---- answers *)

let pools_answer () =
  let name = new_name () in
  Pool.with_ (Pool.open_ ~writer:true ~label:"ml-writer" ~slots:70 name) @@ fun writer ->
  Pool.preallocate writer ~bytes ~count:slots;
  Pool.with_ (Pool.open_ ~label:"ml-reader" name) @@ fun reader ->
  let stat = Pool.stat reader in
  check_bool "slots" true (stat.slots >= 70);
  check_int "attached" slots stat.attached;
  check_int "clients" 2 stat.clients;
  let info = Pool.client_info reader (Pool.client writer) in
  Alcotest.(check string) "label" "ml-writer" info.label;
  check_int "pid" (Unix.getpid ()) info.pid;
  check_bool "role" true (Constants.Client_role.of_int info.role = Writer);
  check_int "no subscribers" 0 (List.length (Pool.subscribers writer));
  Subscription.with_ (Subscription.subscribe reader) @@ fun from ->
  (match Pool.subscribers writer with
  | [ one ] -> Alcotest.(check string) "subscriber" "ml-reader" one.label
  | _ -> Alcotest.fail "not one subscriber");
  check_int "follows" 1 (Subscription.stat from).follows;
  check_int "waited" 1 (Pool.wait_subscribers ~timeout:60. writer 1);
  put writer;
  Buffer.with_ (take from) @@ fun buffer ->
  let slot = Pool.slot_info reader (Buffer.slot buffer) in
  check_bool "use" true (Constants.Slot_use.of_int slot.state = Live);
  check_bool "token" true (slot.token = (Buffer.token buffer :> int64));
  check_int "its slot" (Buffer.slot buffer) (Token.slot (Buffer.token buffer));
  check_int "holds" 1 (Pool.holds reader ~client:(Pool.client reader) ~slot:(Buffer.slot buffer));
  check_bool "listed" true
    (List.exists (fun (one : Answers.Pool_entry.t) -> one.name = name) (Host.pools ()));
  check_bool "limits" true (List.length (Host.limits reader) > 1);
  Alcotest.(check string) "host" (Pool.backend reader) (Host.query ()).backend;
  let info = Buffer.stat buffer in
  Alcotest.(check string) "publisher" "ml-writer" info.label;
  check_int "bytes" bytes info.bytes

let several_subscriptions () =
  let name = new_name () in
  Pool.with_ (open_writer name) @@ fun one ->
  Pool.with_ (open_writer name) @@ fun two ->
  Pool.with_ (Pool.open_ name) @@ fun reader ->
  let follow writer = Subscription.subscribe ~publisher:(Pool.client writer) reader in
  let from_one = follow one and from_two = follow two in
  check_bool "nothing" true (Subscription.receive_any ~timeout:0. reader = None);
  put ~value:'2' two;
  (match Subscription.receive_any reader with
  | Some (buffer, is_it) ->
    check_bool "its" true (is_it from_two && not (is_it from_one));
    Buffer.release buffer
  | None -> Alcotest.fail "nothing");
  Subscription.close from_one;
  Subscription.close from_two

let claims () =
  pair @@ fun writer from ->
  put writer;
  let buffer = take from in
  Claims.set ~lasts:30. buffer 3;
  let token = Buffer.token buffer in
  check_int "claims" 2 (Claims.count writer token);
  Claims.offer buffer 1;
  Claims.add writer token;
  Claims.drop writer token;
  check_int "one more" 3 (Claims.count writer token);
  Claims.void writer token;
  check_int "none" 0 (Claims.count writer token);
  fails ENOENT (fun () -> Claims.void writer token);
  Buffer.with_ (Buffer.get writer (Token.of_slot (Buffer.slot buffer))) ignore;
  Buffer.release buffer

let descriptors_pass_pools_on () =
  Pool.with_ (Pool.open_ ~writer:true "") @@ fun writer ->
  Pool.preallocate writer ~bytes ~count:2;
  let all = Pool.fd writer in
  let reading = Pool.narrow_fd all ~roles:Constants.May.read in
  Unix.close all;
  Pool.with_ (Pool.open_ ~fd:reading "") @@ fun reader ->
  Unix.close reading;
  fails EACCES (fun () -> Pool.acquire ~timeout:0. reader bytes);
  Subscription.with_ (Subscription.subscribe reader) @@ fun from ->
  put writer;
  Buffer.release (take from)

let files_are_attached () =
  pair @@ fun writer from ->
  let file = Filename.temp_file "xmem" ".bin" in
  let fd = Unix.(openfile file [ O_RDWR ] 0o600) in
  ignore (Unix.write_substring fd (String.make bytes 'f') 0 bytes);
  (match catch (fun () -> Pool.attach_fd writer fd ~length:bytes) with
  | Ok buffer -> Buffer.publish buffer; Buffer.release (take from)
  | Error { message; _ } -> check_bool message true (message <> ""));
  Unix.close fd;
  Sys.remove file

(* ---- descriptions *)

let descriptions () =
  pair @@ fun writer from ->
  let format = Constants.Image_format.Rgb8 in
  let size = Metadata.image_bytes format ~width:10 ~height:20 in
  Buffer.with_ (Pool.acquire writer size) (fun buffer ->
      Metadata.describe_image buffer format ~width:10 ~height:20;
      Metadata.describe_source buffer ~content_type:"image/raw" ~producer:"ml" ~timestamp_ns:5L
        ~clock:"frames";
      Metadata.set_id buffer 3;
      Metadata.set_user buffer [| 1L; -1L |];
      Buffer.publish ~timestamp_ns:17L buffer);
  Buffer.with_ (take from) @@ fun buffer ->
  let image = Metadata.image buffer and metadata = Metadata.view buffer in
  check_int "width" 10 image.width;
  check_int "planes" 1 image.planes;
  check_int "rows" 20 image.plane.(0).rows;
  check_int "bytes of a row" 30 image.plane.(0).row_bytes;
  Alcotest.(check string) "type" "image/raw" metadata.content_type;
  Alcotest.(check string) "clock" "frames" metadata.clock;
  check_bool "id" true (metadata.id = 3);
  check_bool "user" true (metadata.user.(0) = 1L && metadata.user.(1) = -1L);
  check_bool "time" true ((Buffer.stat buffer).timestamp_ns = 17L);
  let tensor = Buffer.tensor Bigarray.int8_unsigned buffer in
  check_bool "as a tensor" true (Bigarray.Genarray.dims tensor = [| 20; 10; 3 |]);
  fails EPERM (fun () -> Metadata.set_id buffer 1);
  fails EPERM (fun () -> Metadata.set_user buffer [| 1L |])

let copies () =
  pair @@ fun writer from ->
  put ~value:'c' writer;
  let one = take from in
  Buffer.with_ (Pool.acquire writer bytes) (fun other ->
      Buffer.copy ~from:one other;
      Buffer.copy_range ~from:one ~from_offset:0 ~offset:1 ~length:2 other;
      Buffer.publish other);
  Buffer.release one;
  Buffer.with_ (take from) (fun buffer ->
      check_bool "copied" true ((Buffer.data buffer).{2} = 'c'))

let written_in_place () =
  let name = new_name () in
  Pool.with_ (Pool.open_ ~writer:true name) @@ fun writer ->
  Pool.preallocate writer ~bytes ~count:2;
  let token =
    let buffer = Pool.acquire writer bytes in
    (Buffer.data_mut buffer).{0} <- 'i';
    let token = Buffer.publish_token ~keep:true buffer in
    Buffer.get_mut buffer;
    (Buffer.data_mut buffer).{1} <- 'j';
    Buffer.publish buffer;
    token
  in
  fails ESTALE (fun () -> Buffer.get writer token);
  Gc.full_major ();
  check_int "left" 0 (handles ())

(* ---- callbacks *)

let limbo_is_told () =
  let name = new_name () in
  Pool.with_ (open_writer name) @@ fun writer ->
  Pool.with_ (Pool.open_ name) @@ fun reader ->
  let from = Subscription.subscribe reader in
  let told = ref [] in
  Pool.limbo_hook ~count:0 writer (Some (fun (limbo : Answers.Limbo.t) -> told := limbo :: !told));
  Gc.full_major ();
  put writer;
  let buffer = take from in
  (* the owner drops it while the reader holds it *)
  for _ = 1 to 200 do put writer done;
  ignore (Pool.collect writer);
  ignore (Pool.stat writer);
  check_bool "told" true (List.length !told > 0);
  let before = List.length !told in
  Pool.limbo_hook writer None;
  Buffer.release buffer;
  Subscription.close from;
  ignore (Pool.stat writer);
  check_int "no more" before (List.length !told)

(* ---- GPUs: the fake driver *)

let megabyte = 2 lsl 20

let with_gpu f =
  let name = new_name () in
  Pool.with_ (Pool.open_ ~writer:true name) @@ fun writer ->
  Pool.preallocate writer ~bytes:megabyte ~count:4 ~device:0
    ~flags:Constants.Memory.(cuda lor readers);
  Pool.with_ (Pool.open_ name) @@ fun reader ->
  Subscription.with_ (Subscription.subscribe reader) @@ fun from -> f writer from

let memory_of_a_gpu () =
  check_bool "devices" true ((Cuda.query ()).devices > 0);
  check_int "device" 0 (Cuda.device_info 0).device_id;
  with_gpu @@ fun writer from ->
  let mine = Bigarray.(Genarray.init Int32 c_layout [| 100 |] (fun at -> Int32.of_int at.(0))) in
  Buffer.with_ (Cuda.acquire writer ~device:0 megabyte) (fun buffer ->
      check_bool "address" true (Cuda.ptr_mut buffer <> 0n);
      Buffer.copy_from_array mine buffer;
      Buffer.publish buffer);
  Buffer.with_ (take from) @@ fun buffer ->
  Buffer.wait buffer;
  Cuda.wait_on buffer ~stream:0n;
  check_bool "address" true (Cuda.ptr buffer <> 0n);
  check_int "device" 0 (Cuda.device buffer);
  fails EMEDIUMTYPE (fun () -> Buffer.data buffer);
  let other = Bigarray.(Genarray.create Int32 c_layout [| 100 |]) in
  Buffer.copy_to_array other buffer;
  check_bool "contents" true (other = mine)

(* The collector knows the bytes: forgotten buffers drive it. *)
let the_collector_knows_memory_of_gpus () =
  with_gpu @@ fun writer from ->
  Buffer.publish (Cuda.acquire writer ~device:0 megabyte);
  let buffer = take from in
  Gc.full_major ();
  let before = (Gc.quick_stat ()).minor_collections in
  for _ = 1 to 1_000 do Buffer.release (Buffer.clone buffer) done;
  check_bool "collections" true ((Gc.quick_stat ()).minor_collections > before);
  Buffer.release buffer

let released_on_a_stream () =
  with_gpu @@ fun writer from ->
  let released stream =
    Buffer.publish (Cuda.acquire writer ~device:0 megabyte);
    let buffer = take from in
    Cuda.release_on buffer ~stream;
    check_int "the handle is gone" 0 (handles ());
    fails EBADF (fun () -> Buffer.stat buffer)
  in
  List.iter released [ 0n; Cuda.all_streams ]

external allocated : string -> int -> nativeint = "xmem_test_allocated"

let memory_that_exists_is_attached () =
  pair @@ fun writer from ->
  fails EMEDIUMTYPE (fun () -> Cuda.attach writer 4096n 4096);
  let finished = ref 0 in
  let memory = allocated (Sys.getenv "XMEM_CUDA_DRIVER") megabyte in
  let lend () =
    Cuda.attach writer memory megabyte ~flags:Constants.Memory.readers
      ~finished:(fun () -> incr finished)
  in
  Buffer.publish (lend ());
  let buffer = take from in
  check_int "device" 0 (Cuda.device buffer);
  settle ();
  check_int "in use" 0 !finished;
  Buffer.release buffer;
  ignore (Pool.collect writer);
  check_int "finished" 1 !finished

(* ---- event loops *)

let a_descriptor_is_ready () =
  pair @@ fun writer from ->
  let fd = Subscription.poll_fd from in
  let ready seconds =
    match Unix.select [ fd ] [] [] seconds with [ _ ], _, _ -> true | _ -> false
  in
  put writer;
  check_bool "ready" true (ready 60.);
  Buffer.release (take from);
  let rec drained () = ready 0. && Subscription.receive ~timeout:0. from = None && drained () in
  ignore (drained ())

(* The pool is full of clients that the program has forgotten. *)
let forgotten_pools_end () =
  let name = new_name () in
  Pool.with_ (Pool.open_ ~writer:true ~clients:4 name) @@ fun _ ->
  for _ = 1 to 3 do
    ignore (Sys.opaque_identity (Pool.open_ name))
  done;
  Gc.full_major ();
  Pool.with_ (Pool.open_ name) ignore

(* A number that C would cut is refused, and so is a text that C would cut. *)
let arguments_are_not_cut () =
  pair @@ fun writer _ ->
  let high = 1 lsl 32 in
  (match Pool.acquire ~timeout:0. writer (high + bytes) with
  | buffer -> Alcotest.failf "%d bytes" (Buffer.capacity buffer)
  | exception Error _ -> ());
  fails EINVAL (fun () -> Pool.preallocate writer ~bytes ~count:(high + 1));
  fails EINVAL (fun () -> Pool.preallocate writer ~bytes:(-1) ~count:1);
  fails EINVAL (fun () -> Pool.client_info writer high);
  fails EINVAL (fun () -> Pool.open_ "a\000b");
  fails EINVAL (fun () -> Pool.open_ ~label:"a\000b" (new_name ()));
  Buffer.with_ (Pool.acquire writer bytes) @@ fun buffer ->
  let one = Bigarray.(Genarray.create Char c_layout [| 1 |]) in
  fails ERANGE (fun () -> Buffer.copy_from_array ~offset:high one buffer);
  fails EINVAL (fun () -> Buffer.copy_to_array ~offset:(-1) one buffer);
  fails EINVAL (fun () -> Claims.set buffer (high + 2));
  fails EINVAL (fun () -> Metadata.describe_tensor ~strides:[| 1 |] buffer Uint8 [| 2; 2 |]);
  fails EINVAL (fun () -> Calls.describe_tensor buffer 1 8 [| 1 |]);
  fails EINVAL (fun () -> Metadata.set_user buffer (Array.make 9 0L))

let tests =
  [
    test "errors say what is wrong" errors_say_what_is_wrong;
    test "results" results;
    test "forgotten pools end" forgotten_pools_end;
    test "arguments are not cut" arguments_are_not_cut;
    test "codes are numbers" codes_are_numbers;
    test "pools answer" pools_answer;
    test "several subscriptions" several_subscriptions;
    test "claims" claims;
    test "descriptors pass pools on" descriptors_pass_pools_on;
    test "files are attached" files_are_attached;
    test "descriptions" descriptions;
    test "copies" copies;
    test "written in place" written_in_place;
    test "limbo is told" limbo_is_told;
    test "memory of a GPU" memory_of_a_gpu;
    test "the collector knows memory of GPUs" the_collector_knows_memory_of_gpus;
    test "released on a stream" released_on_a_stream;
    test "memory that exists is attached" memory_that_exists_is_attached;
    test "a descriptor is ready" a_descriptor_is_ready;
  ]
