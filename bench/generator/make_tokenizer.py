"""Makes a small byte-level tokenizer where Hugging Face's cache would have it: tools ask for one, and
nothing is fetched. Run by the Python of a tool, which has the library.

    make_tokenizer.py HF_HOME TEXT...
"""

import json
import sys
from pathlib import Path

from tokenizers import ByteLevelBPETokenizer

hub = Path(sys.argv[1]) / "hub/models--local--tiny"
made = hub / "snapshots/made"
made.mkdir(parents=True, exist_ok=True)
(hub / "refs").mkdir(exist_ok=True)
(hub / "refs/main").write_text("made")
tokenizer = ByteLevelBPETokenizer()
special = ["<unk>", "<s>", "</s>", "<pad>"]
tokenizer.train(sys.argv[2:], vocab_size=4000, special_tokens=special)
tokenizer.save(str(made / "tokenizer.json"))
names = dict(zip(("unk_token", "bos_token", "eos_token", "pad_token"), special, strict=True))
config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 100000, **names}
(made / "tokenizer_config.json").write_text(json.dumps(config))
# Without a model's configuration some versions do not know what they have.
(made / "config.json").write_text(json.dumps({"model_type": "gpt2", "vocab_size": 4000}))
