#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run each picture of a pool through an ONNX model, and publish the results in another pool.

ONNX Runtime reads the camera's buffers and writes those of the results: nothing is copied. Without
--model it draws the edges, so that viewer.py can look at the results:

    onnx_pipeline.py & viewer.py --pool results edges.png & camera.py video.mpeg
"""
import argparse
import sys

import numpy
import onnxruntime
import xmem
import xmem.onnx


def edges():
    """Make a model: how bright each pixel of a picture is compared with those around it."""
    from onnx import TensorProto, helper

    around = numpy.full((3, 1, 3, 3), -1, "float32")
    around[:, :, 1, 1] = 8
    shape = ["height", "width", 3]
    graph = helper.make_graph(
        [helper.make_node("Cast", ["picture"], ["numbers"], to=TensorProto.FLOAT),
         helper.make_node("Transpose", ["numbers"], ["planes"], perm=[2, 0, 1]),
         helper.make_node("Unsqueeze", ["planes", "first"], ["batch"]),
         helper.make_node("Conv", ["batch", "around"], ["found"], group=3, pads=[1, 1, 1, 1]),
         helper.make_node("Squeeze", ["found", "first"], ["flat"]),
         helper.make_node("Transpose", ["flat"], ["pixels"], perm=[1, 2, 0]),
         helper.make_node("Clip", ["pixels", "black", "white"], ["clipped"]),
         helper.make_node("Cast", ["clipped"], ["result"], to=TensorProto.UINT8)],
        "edges", [helper.make_tensor_value_info("picture", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("result", TensorProto.UINT8, shape)],
        [helper.make_tensor("first", TensorProto.INT64, [1], [0]),
         helper.make_tensor("around", TensorProto.FLOAT, around.shape, around.ravel()),
         helper.make_tensor("black", TensorProto.FLOAT, [], [0]),
         helper.make_tensor("white", TensorProto.FLOAT, [], [255])])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    return model.SerializeToString()


def work(session, frames, results):
    """A result has the time of its picture."""
    (picture,), (result,) = session.get_inputs(), session.get_outputs()
    count = 0
    with xmem.onnx.Binding(session) as binding:
        for frame in frames:
            # If a model leaves its result's shape open, it is that of the picture.
            shape = None if all(type(n) is int for n in result.shape) else frame.shape
            with frame, xmem.onnx.acquire_output(results, session, result.name, shape) as buffer:
                binding.input(picture.name, frame)
                binding.output(result.name, buffer)
                binding.run()
                buffer.publish(timestamp_ns=frame.timestamp_ns)
            count += 1
    print(f"onnx_pipeline: {count} pictures, {frames.lost} lost")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="with one input and one output (draw edges)")
    parser.add_argument("--pool", default="camera", help="of pictures (camera)")
    parser.add_argument("--results", default="results", help="the pool of results (results)")
    options = parser.parse_args()
    session = onnxruntime.InferenceSession(options.model or edges())
    with xmem.BufferPool(options.results, writer=True, wait_bound=1, keep=16) as results:
        with xmem.BufferPool(options.pool).subscribe(waits=True, history=64, lasts=False) as frames:
            work(session, frames, results)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:      # errors of ONNX Runtime have no common class
        sys.exit(f"onnx_pipeline: {error}")
