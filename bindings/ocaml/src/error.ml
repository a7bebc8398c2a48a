(* SPDX-License-Identifier: MIT *)
(* The exception of a failed call. *)

type t = {
  code : Constants.Code.t;
  call : string;  (** the C function, without "xmem_" *)
  message : string;  (** what was tried, and what to do *)
}

exception Error of t

let () =
  Printexc.register_printer (function
    | Error { call; message; _ } -> Some (Printf.sprintf "Xmem.Error (%s: %s)" call message)
    | _ -> None)
