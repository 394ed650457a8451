"""Vectors of texts by onnxruntime and Hugging Face's tokenizers, as JSON.

python3 minilm.py TOKENIZER_JSON MODEL_ONNX < one text a line, as JSON
"""

import json
import sys

import numpy
import onnxruntime
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file(sys.argv[1])
tokenizer.no_padding()
tokenizer.enable_truncation(256)
session = onnxruntime.InferenceSession(sys.argv[2])
for line in sys.stdin:
    ids = numpy.array([tokenizer.encode(json.loads(line)).ids])
    inputs = {"input_ids": ids, "attention_mask": numpy.ones_like(ids)}
    inputs["token_type_ids"] = numpy.zeros_like(ids)
    print(json.dumps(session.run(None, inputs)[0][0].mean(0).tolist()))
