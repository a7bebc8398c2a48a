(* SPDX-License-Identifier: MIT *)
(* Functions of OCaml that the library calls: callbacks.c notes the calls, and [run] makes them. *)

external noted : unit -> nativeint = "xmem_ml_noted"
external noted_one : nativeint -> nativeint * int * nativeint = "xmem_ml_noted_one"
external noted_free : nativeint -> unit = "xmem_ml_noted_free"

module Numbers = Map.Make (Int)

(* By number: C keeps the number, because the collector moves functions. *)
let table : (nativeint -> unit) Numbers.t Atomic.t = Atomic.make Numbers.empty
let last = Atomic.make 0

let rec change f =
  let before = Atomic.get table in
  if not (Atomic.compare_and_set table before (f before)) then change f

let add f =
  let id = 1 + Atomic.fetch_and_add last 1 in
  change (Numbers.add id f);
  id

let remove id = change (Numbers.remove id)

(* For a single call. *)
let add_once f =
  let id = ref 0 in
  let call _ =
    remove !id;
    f ()
  in
  id := add call;
  !id

let rec run_from address =
  if address <> 0n then begin
    let next, id, limbo = noted_one address in
    Fun.protect
      ~finally:(fun () -> noted_free address)
      (fun () ->
        run_from next;
        Option.iter (fun f -> f limbo) (Numbers.find_opt id (Atomic.get table)))
  end

(* The oldest first. *)
let run () = run_from (noted ())
