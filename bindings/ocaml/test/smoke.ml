let () =
  let name = Printf.sprintf "smoke%d" (Unix.getpid ()) in
  let w = Xmem.Pool.open_ ~writer:true name and r = Xmem.Pool.open_ name in
  Xmem.Pool.preallocate w ~bytes:4096 ~count:8;
  let s = Xmem.Subscription.subscribe r in
  Xmem.Buffer.with_ (Xmem.Pool.acquire w 4096) (fun b ->
      let v = Xmem.Buffer.tensor_mut Bigarray.float32 [| 2; 3 |] b in
      Bigarray.Genarray.fill v 2.5;
      Xmem.Buffer.publish b);
  (match Xmem.Subscription.receive ~timeout:1. s with
   | None -> print_endline "none"
   | Some b -> Xmem.Buffer.with_ b (fun b ->
     let t = Xmem.Buffer.tensor Bigarray.float32 b in
     Printf.printf "%f %d\n" (Bigarray.Genarray.get t [|1;2|]) (Xmem.Buffer.size b)));
  Printf.printf "live %d %s\n" (Xmem.handles ()) (Xmem.Pool.backend w);
  (try ignore (Xmem.Pool.acquire ~timeout:0. r 4096) with Xmem.Error {code; call; message} -> Printf.printf "%d %s %s\n" (Xmem.Code.to_int code) call message);
  Gc.full_major (); 
  Printf.printf "live %d\n" (Xmem.handles ());
  Xmem.Pool.close w; Xmem.Pool.close r;
  List.iter (fun (p : Xmem.Answers.Pool_entry.t) -> print_endline p.name) (Xmem.Host.pools ())
