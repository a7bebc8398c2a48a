(* SPDX-License-Identifier: MIT *)
(* Bigarrays of contents: every kind and rank, and the holds that they keep. *)
open Xmem
open Common
open Bigarray

(* The slot stays while a part of the view lives, although nothing refers to the buffer. *)
let parts_keep_the_hold () =
  pair @@ fun writer from ->
  put ~value:'a' writer;
  let part = ref (Some (Array1.sub (Buffer.data (take from)) 8 100)) in
  Gc.full_major ();
  check_int "held by the part" 1 (held writer);
  let form = ref (Some (reshape_2 (genarray_of_array1 (Option.get !part)) 10 10)) in
  part := None;
  Gc.full_major ();
  check_int "held by the reshaped form" 1 (held writer);
  let row = ref (Some (Array2.slice_left (Option.get !form) 3)) in
  form := None;
  Gc.full_major ();
  check_int "held by the row" 1 (held writer);
  for _ = 1 to slots - 1 do put ~value:'b' writer; Buffer.release (take from) done;
  check_bool "and not overwritten" true (Array1.get (Option.get !row) 9 = 'a');
  row := None;
  Gc.full_major ();
  check_int "not held" 0 (held writer)

let a_view_outlives_the_forgotten_buffer () =
  pair @@ fun writer from ->
  put ~value:'a' writer;
  let view = Buffer.data (take from) in
  Gc.full_major ();
  check_int "held" 1 (held writer);
  check_bool "contents" true (view.{bytes - 1} = 'a')

let a_released_view_is_empty () =
  pair @@ fun writer from ->
  put writer;
  let buffer = take from in
  let view = Buffer.data buffer in
  Buffer.release buffer;
  check_int "not held, without a collection" 0 (held writer);
  check_int "empty" 0 (Array1.dim view);
  Alcotest.check_raises "bounds" (Invalid_argument "index out of bounds") (fun () ->
      ignore view.{0})

(* OCaml shares its own proxy between parts. It must not be taken for a view's. *)
let parts_of_an_empty_view () =
  pair @@ fun writer _ ->
  let drop = [ Buffer.release; (fun buffer -> Buffer.publish buffer) ] in
  List.iter
    (fun drop ->
      let buffer = Pool.acquire writer bytes in
      let view = Buffer.data_mut buffer in
      drop buffer;
      check_int "empty" 0 (Array1.dim (Array1.sub view 0 0));
      check_int "empty" 0 (Genarray.nth_dim (reshape (genarray_of_array1 view) [| 0; 3 |]) 0);
      Gc.full_major ())
    drop

let parts_outlive_a_release () =
  pair @@ fun writer from ->
  put ~value:'a' writer;
  let buffer = take from in
  let part = Array1.sub (Buffer.data buffer) 1 2 in
  Buffer.release buffer;
  Gc.full_major ();
  check_int "held by the part" 1 (held writer);
  check_bool "contents" true (part.{0} = 'a')

(* The publisher still has a part, so the slot is not acquired again. *)
let parts_outlive_publishing () =
  pair @@ fun writer from ->
  let buffer = Pool.acquire writer bytes in
  let part = Array1.sub (Buffer.data_mut buffer) 0 4 in
  part.{0} <- 'p';
  Buffer.publish buffer;
  fails EBADF (fun () -> Buffer.stat buffer);
  Buffer.release (take from);
  for _ = 1 to 2 * slots do put ~value:'q' writer; Buffer.release (take from) done;
  check_bool "contents" true (part.{0} = 'p')

let parts_outlive_forgetting () =
  pair @@ fun writer from ->
  put ~value:'a' writer;
  let buffer = take from in
  let part = Array1.sub (Buffer.data buffer) 0 4 and token = Buffer.token buffer in
  Claims.forget buffer;
  Buffer.with_ (Buffer.get writer token) ignore;
  check_int "held by the part" 1 (held writer);
  check_bool "contents" true (part.{0} = 'a')

let one_view_of_each_form () =
  pair @@ fun writer from ->
  put writer;
  Buffer.with_ (take from) @@ fun buffer ->
  let view = Buffer.data buffer in
  for _ = 1 to 1000 do check_bool "it" true (Buffer.data buffer == view) done

let get_mut_refuses_parts () =
  let name = new_name () in
  Pool.with_ (open_writer name) @@ fun writer ->
  Pool.with_ (Pool.open_ name) @@ fun reader ->
  Subscription.with_ (Subscription.subscribe reader) @@ fun from ->
  put ~value:'a' writer;
  Buffer.with_ (take from) @@ fun buffer ->
  let part = Array1.sub (Buffer.data buffer) 0 4 in
  fails EBUSY (fun () -> Buffer.get_mut buffer);
  check_bool "contents" true (part.{0} = 'a');
  let view = Buffer.data buffer in
  Sys.opaque_identity (ignore part);
  Buffer.get_mut buffer;
  check_int "the view is empty" 0 (Array1.dim view);
  (Buffer.data_mut buffer).{0} <- 'b';
  Buffer.publish buffer

let private_copies () =
  pair @@ fun writer from ->
  put ~value:'a' writer;
  Buffer.with_ (take from) @@ fun buffer ->
  let mine = Buffer.data_private buffer in
  mine.{0} <- 'z';
  check_bool "written" true (mine.{0} = 'z');
  check_bool "the contents are not" true ((Buffer.data buffer).{0} = 'a')

(* The collector knows the bytes of private copies: they drive it, and shared ones do not. *)
let the_collector_knows_private_copies () =
  let big = 8 lsl 20 in
  let collections show =
    let name = new_name () in
    Pool.with_ (Pool.open_ ~writer:true name) @@ fun writer ->
    Pool.with_ (Pool.open_ name) @@ fun reader ->
    Pool.preallocate writer ~bytes:big ~count:4;
    Subscription.with_ (Subscription.subscribe reader) @@ fun from ->
    Buffer.publish (Pool.acquire writer big);
    let buffer = take from in
    Gc.full_major ();
    let before = (Gc.quick_stat ()).minor_collections in
    for _ = 1 to 1_000 do
      Buffer.with_ (Buffer.clone buffer) (fun buffer -> ignore (show buffer))
    done;
    let after = (Gc.quick_stat ()).minor_collections in
    Buffer.release buffer;
    after - before
  in
  check_int "shared" 0 (collections Buffer.data);
  check_bool "private" true (collections Buffer.data_private > 0)

(* ---- tensors *)

type any = Any : ('a, 'b) kind * 'a -> any

let kinds =
  [
    Any (Float32, 1.5); Any (Float64, 2.5); Any (Int8_signed, -3); Any (Int8_unsigned, 200);
    Any (Int16_signed, -300); Any (Int16_unsigned, 60_000); Any (Int32, -7l); Any (Int64, 8L);
    Any (Nativeint, -9n); Any (Complex32, { Complex.re = 1.; im = -1. });
    Any (Complex64, { Complex.re = 0.5; im = 2. }); Any (Char, 'c');
  ]

let every_kind_and_rank () =
  pair @@ fun writer from ->
  List.iter
    (fun (Any (kind, value)) ->
      for rank = 0 to 8 do
        let shape = Array.init rank (fun i -> 1 + (i mod 2)) in
        let last = Array.map pred shape in
        Buffer.with_ (Pool.acquire writer bytes) (fun buffer ->
            let tensor = Buffer.tensor_mut kind shape buffer in
            check_bool "its shape" true (Genarray.dims tensor = shape);
            Genarray.set tensor last value;
            Buffer.publish buffer);
        Buffer.with_ (take from) (fun buffer ->
            let tensor = Buffer.tensor kind buffer in
            check_bool "the shape received" true (Genarray.dims tensor = shape);
            check_bool "the element" true (Genarray.get tensor last = value))
      done)
    kinds

let every_dtype_has_a_kind () =
  pair @@ fun writer from ->
  let show buffer item : int array =
    match item with
    | 1 -> Genarray.dims (Buffer.tensor Int8_unsigned buffer)
    | 2 -> Genarray.dims (Buffer.tensor Int16_unsigned buffer)
    | 4 -> Genarray.dims (Buffer.tensor Int32 buffer)
    | 8 -> Genarray.dims (Buffer.tensor Int64 buffer)
    | _ -> [||]
  in
  let floats = [ ("float32", Any (Float32, 0.)); ("float64", Any (Float64, 0.));
                 ("complex64", Any (Complex32, Complex.zero));
                 ("complex128", Any (Complex64, Complex.zero)) ] in
  List.iter
    (fun (name, number, item) ->
      Buffer.with_ (Pool.acquire writer bytes) (fun buffer ->
          Metadata.describe_tensor buffer (Constants.Dtype.of_int number) [| 3; 2 |];
          Buffer.publish buffer);
      Buffer.with_ (take from) @@ fun buffer ->
      let dims =
        match List.assoc_opt name floats with
        | Some (Any (kind, _)) -> Genarray.dims (Buffer.tensor kind buffer)
        | None -> show buffer item
      in
      Alcotest.(check (array int)) name [| 3; 2 |] dims)
    Constants.dtypes

let another_kind_is_refused () =
  pair @@ fun writer from ->
  Buffer.with_ (Pool.acquire writer bytes) (fun buffer ->
      ignore (Buffer.tensor_mut Float32 [| 4 |] buffer);
      Buffer.publish buffer);
  Buffer.with_ (take from) (fun buffer ->
      fails EINVAL (fun () -> Buffer.tensor Int32 buffer);
      fails EINVAL (fun () -> Buffer.tensor Float64 buffer));
  Buffer.with_ (Pool.acquire writer bytes) (fun buffer ->
      Metadata.describe_tensor buffer Float32 [| 4; 2 |] ~strides:[| 16; 4 |];
      Buffer.publish buffer);
  Buffer.with_ (take from) (fun buffer ->
      fails EINVAL (fun () -> Buffer.tensor Float32 buffer));
  Buffer.with_ (Pool.acquire writer bytes) (fun buffer ->
      fails ERANGE (fun () -> Buffer.tensor_mut Float64 [| bytes |] buffer))

let arrays_are_copied () =
  pair @@ fun writer from ->
  let mine = Genarray.init Float64 c_layout [| 2; 3 |] (fun at -> float (at.(0) * 3 + at.(1))) in
  Buffer.with_ (Pool.acquire writer bytes) (fun buffer ->
      Buffer.copy_from_array mine buffer;
      Buffer.publish buffer);
  Buffer.with_ (take from) (fun buffer ->
      let other = Genarray.create Float64 c_layout [| 6 |] in
      Buffer.copy_to_array other buffer;
      check_bool "equal" true (reshape other [| 2; 3 |] = mine);
      let tail = Genarray.create Float64 c_layout [| 1 |] in
      Buffer.copy_to_array ~offset:40 tail buffer;
      check_bool "the last" true (Genarray.get tail [| 0 |] = 5.))

let tests =
  [
    test "parts keep the hold" parts_keep_the_hold;
    test "a view outlives the forgotten buffer" a_view_outlives_the_forgotten_buffer;
    test "a released view is empty" a_released_view_is_empty;
    test "parts of an empty view" parts_of_an_empty_view;
    test "parts outlive a release" parts_outlive_a_release;
    test "parts outlive publishing" parts_outlive_publishing;
    test "parts outlive forgetting" parts_outlive_forgetting;
    test "one view of each form" one_view_of_each_form;
    test "get_mut refuses parts" get_mut_refuses_parts;
    test "private copies" private_copies;
    test "the collector knows private copies" the_collector_knows_private_copies;
    test "every kind and rank" every_kind_and_rank;
    test "every type of elements has a kind" every_dtype_has_a_kind;
    test "another kind is refused" another_kind_is_refused;
    test "arrays are copied" arrays_are_copied;
  ]
