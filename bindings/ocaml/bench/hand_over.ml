(* SPDX-License-Identifier: MIT *)
(* hand_over [ROUNDS]: a hand-over in OCaml, with scoped handles, beside one in C, in turn. Times
   are of the processor, so other programs matter little. *)
external in_c : nativeint -> nativeint -> int -> int -> int = "xmem_bench_in_c"

let bytes = 4096
let each = 20_000
let target = 150.

let address it = Ctypes.raw_address_of_ptr (Xmem__Managed.raw it)

let in_ocaml writer from =
  for _ = 1 to each do
    Xmem.Buffer.with_ (Xmem.Pool.acquire ~timeout:0. writer bytes) Xmem.Buffer.publish;
    match Xmem.Subscription.receive ~timeout:0. from with
    | Some buffer -> Xmem.Buffer.with_ buffer ignore
    | None -> failwith "nothing was received"
  done

let took f =
  let before = Sys.time () in
  f ();
  (Sys.time () -. before) *. 1e9 /. float each

let median all =
  let sorted = List.sort compare all in
  List.nth sorted (List.length sorted / 2)

let () =
  let rounds = if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 31 in
  let name = Printf.sprintf "bench-ocaml-%d" (Unix.getpid ()) in
  Xmem.Pool.with_ (Xmem.Pool.open_ ~writer:true name) @@ fun writer ->
  Xmem.Pool.with_ (Xmem.Pool.open_ name) @@ fun reader ->
  Xmem.Pool.preallocate writer ~bytes ~count:8;
  let from = Xmem.Subscription.subscribe reader in
  let pool = address writer in
  let subscription = address from in
  let pairs =
    List.init rounds (fun _ ->
        let c = took (fun () -> assert (in_c pool subscription bytes each = each)) in
        (c, took (fun () -> in_ocaml writer from)))
  in
  let c = median (List.map fst pairs) and more = median (List.map (fun (c, ml) -> ml -. c) pairs) in
  Printf.printf "C %.0f ns a hand-over, OCaml %.0f ns more (target: at most %.0f)\n" c more target;
  if more > target then exit 1
