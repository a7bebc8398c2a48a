(* SPDX-License-Identifier: MIT *)
(* Raw and managed handles. A raw handle is a pointer, as C functions return it: nothing drops it,
   and the collector does not know of it. [with_gc] makes a managed one of it, which is all that
   other modules see. *)
open Ctypes
module D = Xmem_descriptions.Descriptions
module Fast = D.Fast (Fast_made)
module Slow = D.Slow (Slow_made)

type block

(* The fat handle: C is given [raw], and the finaliser of [block] drops it. [pool] keeps the block
   of the pool alive, because the end of a pool's handle ends waits, and some calls on buffers. *)
type 'kind t = {
  mutable raw : unit ptr;  (** NULL: the program has dropped the handle *)
  block : block;
  pool : block;
  mutable acquired : bool;  (** in memory of the CPU, and not written in place *)
  mutable views : (key * view) list;  (** of the contents *)
}

(* A Bigarray of any type; its address, number of the kind, and shape. *)
and view = Obj.t
and key = nativeint * int * int array


type pool = [ `Pool ] t
type subscription = [ `Subscription ] t
type buffer = [ `Buffer ] t
type _ kind = Pool : [ `Pool ] kind | Subscription : [ `Subscription ] kind
  | Buffer : [ `Buffer ] kind

external manage : 'kind kind -> (nativeint[@unboxed]) -> bool -> block
  = "xmem_ml_manage_byte" "xmem_ml_manage"

external drop_block : block -> unit = "xmem_ml_drop"
external gone_block : block -> unit = "xmem_ml_gone" [@@noalloc]
external parts_of : view -> int = "xmem_ml_view_parts" [@@noalloc]
external empty : view -> unit = "xmem_ml_view_empty" [@@noalloc]
external prepare_views : unit -> unit = "xmem_ml_prepare_views"
external live : unit -> int = "xmem_ml_live" [@@noalloc]
external pending : unit -> bool = "xmem_ml_pending" [@@noalloc]
external end_pending : unit -> unit = "xmem_ml_end_pending"
external signals : unit -> unit = "xmem_ml_signals"
external now : unit -> int = "xmem_ml_now" [@@noalloc]

let () = prepare_views ()

(* The handle lives until here, although C alone has used it. *)
let keep it = ignore (Sys.opaque_identity it)

(* Does a part of a view live, or a view that cannot become empty? *)
let is_shown it =
  List.exists (fun ((_, _, shape), view) -> parts_of view > 0 || shape = [||]) it.views

let end_views it =
  List.iter (fun (_, view) -> empty view) it.views;
  it.views <- []

(* Do the work that finalisers and callbacks have put off. *)
let work_off () =
  if pending () then begin
    end_pending ();
    Callbacks.run ()
  end

let[@inline] manage_raw kind raw ~look ~acquired pool =
  let block = manage kind (raw_address_of_ptr raw) look in
  if pending () then work_off ();
  { raw; block; acquired; views = []; pool = (match pool with Some pool -> pool | None -> block) }

external claim : unit -> unit = "xmem_ml_claim" [@@noalloc]
external drop_unclaimed : unit -> unit = "xmem_ml_drop_unclaimed"

(* Make a handle, and a managed one of it. The function of a signal can run in between. *)
let[@inline] made f =
  if pending () then work_off ();
  try f ()
  with problem ->
    let trace = Printexc.get_raw_backtrace () in
    drop_unclaimed ();
    Printexc.raise_with_backtrace problem trace

let with_gc kind ?parent raw = manage_raw kind raw ~look:true ~acquired:false parent

(* The buffer of an acquire or receive. *)
let[@inline] with_gc_quickly ~acquired pool raw =
  manage_raw Buffer raw ~look:false ~acquired (Some pool)

(* ---- errors *)

let last_error () =
  let it = make D.xmem_error in
  setf it D.xmem_error_size (Unsigned.Size_t.of_int (sizeof D.xmem_error));
  let number = -Fast.get_last_error (addr it) in
  (Constants.Code.of_int number, Convert.text_of (getf it D.xmem_error_message))

let fail call =
  let code, message = last_error () in
  raise (Error.Error { code; call; message })

let refuse code call message = raise (Error.Error { code; call; message })

(* Parts of views can keep the handle of C, so C would take it. *)
let dropped () = refuse EBADF "handle" "the program has released, published or closed this handle"
let[@inline] raw it = if is_null it.raw then dropped () else it.raw
let negative r = r < 0
let negative64 r = Int64.compare r 0L < 0
let once call failed f = let r = f () in if failed r then fail call else r

(* A signal ends a wait. Its function runs, and can raise an exception; otherwise the call goes
   on. *)
let rec again call failed f =
  let r = f () in
  if not (failed r) then r
  else
    match last_error () with
    | Constants.Code.EINTR, _ -> signals (); again call failed f
    | code, message -> raise (Error.Error { code; call; message })

(* How many nanoseconds are left of a wait that begins now. At its end it is 1, because 0 means that
   the call does not wait, and its error is another one. *)
let left timeout =
  if timeout <= 0L || timeout = Constants.forever then fun () -> timeout
  else
    let until = Int64.add (Int64.of_int (now ())) timeout in
    fun () -> max 1L (Int64.sub until (Int64.of_int (now ())))

let within timeout call failed f =
  let left = left timeout in
  again call failed (fun () -> f (left ()))

(* ---- dropping *)

let end_use it =
  it.raw <- null;
  if it.views <> [] then end_views it

(* Drop a handle now. *)
let release it =
  end_use it;
  drop_block it.block;
  if pending () then work_off ()

(* C has taken the handle. *)
let gone it =
  end_use it;
  gone_block it.block

(* A call that takes the handle of a buffer away after success. If its contents are shown, it takes
   a clone's. *)
let consume call (it : buffer) f =
  if not (is_shown it) then begin
    ignore (again call negative (fun () -> f (raw it)));
    gone it
  end else begin
    let other = made (fun () -> once call is_null (fun () -> Fast.clone (raw it))) in
    claim ();
    (try ignore (again call negative (fun () -> f other))
     with problem -> Fast.release other; raise problem);
    release it
  end
