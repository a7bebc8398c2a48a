(* SPDX-License-Identifier: MIT *)
(* Numbers, texts and arrays of C as values of OCaml, and back: what the generated files need. *)
open Ctypes
open Unsigned

let uint32_t = UInt32.to_int
let int32_t = Int32.to_int
let int64_t = Int64.to_int
let int64_t_wide (x : int64) = x
let uint64_t = UInt64.to_int
let uint64_t_wide = UInt64.to_int64
let size_t = Size_t.to_int

(* ---- arguments of a call; an error if a number is out of the range of its type in C *)

let refuse call message = raise (Error.Error { code = EINVAL; call; message })

let within low high call n =
  if n < low || n > high then
    refuse call (Printf.sprintf "an argument is %d; it must be from %d to %d" n low high);
  n

let uint32 = within 0 0xffff_ffff
let int32 = within (-0x8000_0000) 0x7fff_ffff
let size = within 0 max_int

(* An array of C has as many elements as it must. *)
let check_length call count = function
  | Some all when Array.length all <> count ->
    refuse call (Printf.sprintf "an array has %d elements, not %d" (Array.length all) count)
  | _ -> ()

let to_uint32_t = UInt32.of_int
let to_int32_t = Int32.of_int
let to_int64_t_wide (x : int64) = x
let to_uint64_t = UInt64.of_int
let to_uint64_t_wide = UInt64.of_int64
let address p = raw_address_of_ptr p
let array read it = Array.init (CArray.length it) (fun i -> read (CArray.get it i))

(* The bytes before the first NUL. *)
let text it =
  let all = String.init (CArray.length it) (CArray.get it) in
  match String.index_opt all '\000' with Some end_ -> String.sub all 0 end_ | None -> all

let bytes it = String.init (CArray.length it) (fun i -> Char.chr (UInt8.to_int (CArray.get it i)))

(* A text of C, copied: whoever passes it keeps it until C has returned. *)
let c_text call = Option.map (fun text ->
    if String.contains text '\000' then refuse call "a text has a NUL, at which it ends in C";
    CArray.start (CArray.of_string text))
let or_null = function Some p -> p | None -> from_voidp char null
let text_of p = if is_null p then "" else coerce (ptr char) string p
let set it field convert = Option.iter (fun value -> setf it field (convert value))

let int64s = Option.map (fun all ->
    CArray.start (CArray.of_list Ctypes.int64_t (List.map Int64.of_int (Array.to_list all))))

let start = function Some p -> p | None -> from_voidp Ctypes.int64_t null
