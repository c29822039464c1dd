"""Opens what Tare writes with the programs that it is written for, and compares their outputs with Tare's.

Run: python readers_test.py FOLDER_OF_PROGRAMS

ONNX models: the checker of the package onnx, with its full check, and ONNX Runtime. `.pt2` files: PyTorch's
torch.export.load(), a step of training, AOTInductor and torch.onnx.export(), where this Python has a PyTorch; the two
last ones for all models with TARE_DEEP=1. GGUF files: the package gguf.
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy
import onnx
import onnxruntime

try:
    import torch
except (ImportError, OSError):
    torch = None

PROGRAMS = sys.argv.pop(1)


def array(folder, about):
    return numpy.fromfile(os.path.join(folder, about["file"]), about["dtype"]).reshape(about["shape"])


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        subprocess.run([os.path.join(PROGRAMS, "interchange_files"), cls.folder], check=True)
        with open(os.path.join(cls.folder, "models.json"), encoding="utf-8") as file:
            cls.models = json.load(file)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def runs(self, model):
        for run in model["runs"]:
            yield [array(self.folder, one) for one in run["inputs"]], array(self.folder, run["output"])

    def expect_near(self, got, expected, most):
        self.assertEqual(got.shape, expected.shape)
        scale = max(1, numpy.abs(expected).max())
        self.assertLessEqual(numpy.abs(got - expected).max() / scale, most)

    def test_onnx_models_give_the_outputs_of_tare(self):
        attentions = 0
        for model in self.models:
            for extension, opset in ((".onnx", 18), (".opset23.onnx", 23)):
                path = os.path.join(self.folder, model["name"] + extension)
                if not os.path.exists(path):  # with transforms, in opset 18 alone
                    continue
                with self.subTest(path):
                    onnx.checker.check_model(path, full_check=True)
                    written = onnx.load(path)
                    self.assertEqual(written.opset_import[0].version, opset)
                    attentions += sum(node.op_type == "Attention" for node in written.graph.node)
                    session = onnxruntime.InferenceSession(path)
                    names = [one.name for one in session.get_inputs()]
                    for inputs, expected in self.runs(model):
                        self.expect_near(session.run(None, dict(zip(names, inputs)))[0], expected, 1e-5)
        self.assertGreater(attentions, 0)

    @unittest.skipIf(torch is None, "this Python has no PyTorch")
    def test_pt2_files_give_the_outputs_of_tare_and_can_be_trained(self):
        for model in self.models:
            with self.subTest(model["name"]):
                module = torch.export.load(os.path.join(self.folder, model["name"] + ".pt2")).module()
                for inputs, expected in self.runs(model):
                    with torch.no_grad():
                        got = module(*map(torch.from_numpy, inputs))
                    self.expect_near(got.numpy(), expected, 1e-6)
                module(*map(torch.from_numpy, inputs)).square().mean().backward()
                self.assertTrue(all(one.grad is not None for one in module.parameters()))

    def chosen(self):
        """Returns all models with TARE_DEEP=1, else those that PyTorch compiles within seconds."""
        return [one for one in self.models if os.environ.get("TARE_DEEP") == "1" or one["name"] in ("mlp", "gpt")]

    @unittest.skipIf(torch is None, "this Python has no PyTorch")
    def test_pt2_files_are_compiled_by_aotinductor(self):
        for model in self.chosen():
            with self.subTest(model["name"]):
                program = torch.export.load(os.path.join(self.folder, model["name"] + ".pt2"))
                package = os.path.join(self.folder, model["name"] + "-compiled.pt2")
                torch._inductor.aoti_compile_and_package(program, package_path=package)
                compiled = torch._inductor.aoti_load_package(package)
                for inputs, expected in self.runs(model):
                    self.expect_near(compiled(*map(torch.from_numpy, inputs)).numpy(), expected, 1e-4)

    @unittest.skipIf(torch is None or not importlib.util.find_spec("onnxscript"),
                     "this Python has no PyTorch with onnxscript")
    def test_pt2_files_are_written_as_onnx_by_pytorch(self):
        for model in self.chosen():
            with self.subTest(model["name"]):
                program = torch.export.load(os.path.join(self.folder, model["name"] + ".pt2"))
                path = os.path.join(self.folder, model["name"] + "-by-torch.onnx")
                torch.onnx.export(program, (), path, dynamo=True, verbose=False)
                session = onnxruntime.InferenceSession(path)
                names = [one.name for one in session.get_inputs()]
                for inputs, expected in self.runs(model):
                    self.expect_near(session.run(None, dict(zip(names, inputs)))[0], expected, 1e-4)

    def test_gguf_files_have_the_tensors_of_the_model(self):
        with open(os.path.join(self.folder, "weights.json"), encoding="utf-8") as file:
            weights = {name: array(self.folder, about) for name, about in json.load(file).items()}
        names = {"wte.weight": "token_embd.weight", "wpe.weight": "position_embd.weight",
                 "ln_f.weight": "output_norm.weight", "ln_f.bias": "output_norm.bias"}
        parts = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
                 "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
        for block in range(2):
            for ours, theirs in parts.items():
                for kind in ("weight", "bias"):
                    names[f"h.{block}.{ours}.{kind}"] = f"blk.{block}.{theirs}.{kind}"
        for form, most in (("f32", 0), ("f16", 1e-3), ("q8_0", 1e-2)):
            with self.subTest(form):
                reader = gguf.GGUFReader(os.path.join(self.folder, f"gpt.{form}.gguf"))
                self.assertEqual(reader.get_field("general.architecture").contents(), "gpt2")
                self.assertEqual(reader.get_field("gpt2.block_count").contents(), 2)
                self.assertEqual(reader.get_field("gpt2.attention.head_count").contents(), 2)
                self.assertEqual(reader.get_field("tokenizer.ggml.tokens").contents(), ["a", "b"])
                found = {one.name: one for one in reader.tensors}
                self.assertEqual(set(found), set(names.values()))
                for ours, theirs in names.items():
                    expected = weights[ours].T if ours.startswith("h.") else weights[ours]
                    got = gguf.dequantize(found[theirs].data, found[theirs].tensor_type)
                    self.expect_near(got.reshape(expected.shape), expected, most)

    def test_the_lines_of_the_docs_run(self):
        recipe = os.path.join(self.folder, "digits.yaml")
        with open(recipe, "w", encoding="utf-8") as file:
            file.write("{name: digits, batch: 32, data: {name: generated_digits, count: 64, size: 28}, "
                       "model: {name: mlp}, phases: [{}], export: digits.tare}")
        tare = os.path.join(PROGRAMS, "tare")

        def run(*words):
            subprocess.run([tare, *words], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

        run("run", recipe, "folder=.")
        for form in ("onnx", "pt2"):
            run("export", "digits/digits.tare", "--format", form, "--out", "digits." + form)
        with open("../../docs/interchange.md", encoding="utf-8") as file:
            blocks = [block.split("```")[0] for block in file.read().split("```python\n")[1:]]
        self.assertEqual(len(blocks), 2)
        for block in blocks:
            if "import torch" in block and torch is None:
                continue
            printed = subprocess.run([sys.executable, "-c", block], cwd=self.folder, check=True, capture_output=True,
                                     text=True).stdout
            self.assertRegex(printed, r"\['[0-9]', '[0-9]'\]")


if __name__ == "__main__":
    unittest.main()
