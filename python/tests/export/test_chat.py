"""Chat templates in the form that a server reads, beside Jinja."""

import itertools
import json
import pathlib
import tempfile
import unittest

from braid.export import chat

CHATML = (
    "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# As Qwen2.5: who says nothing gets a system's message.
DEFAULT = (
    "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nBe good.<|im_end|>\n' }}{% endif %}"
    + CHATML
)
# As Llama 2: the system's message is part of the user's first one.
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}"
    "{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}{% endif %}"
    "{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if loop.index0 == 0 and system is defined %}"
    "{% set content = '<<SYS>>\n' + system.strip() + '\n<</SYS>>\n\n' + m['content'].strip() %}"
    "{% else %}{% set content = m['content'].strip() %}{% endif %}"
    "{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + content + ' [/INST]' }}"
    "{% else %}{{ ' ' + content + ' ' + eos_token }}{% endif %}{% endfor %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{% for m in messages %}"
    "{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)
# As Mistral: the system's message is in front of the user's last one.
MISTRAL = (
    "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] + '\n\n' %}"
    "{% set rest = messages[1:] %}{% else %}{% set system = '' %}{% set rest = messages %}{% endif %}"
    "{{ bos_token }}{% for m in rest %}{% if m['role'] == 'user' %}"
    "{{ '[INST] ' + (system if loop.last else '') + m['content'] + '[/INST]' }}"
    "{% else %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}"
)
CONFIG = {"bos_token": "<s>", "eos_token": {"content": "</s>", "special": True}}


class Chat(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self.folder = pathlib.Path(self._directory.name)
        (self.folder / "tokenizer_config.json").write_text(json.dumps(CONFIG))

    def find(self, template):
        (self.folder / "chat_template.jinja").write_text(template)
        return chat.of_folder(self.folder)["chat"]

    def test_prompts_are_those_of_jinja(self):
        names = {"bos_token": "<s>", "eos_token": "</s>"}
        for name, template, trim, system in (
            ("ChatML", CHATML, False, True),
            ("Qwen", DEFAULT, False, True),
            ("Llama 2", LLAMA2, True, True),
            ("Gemma", GEMMA, True, False),
            ("Mistral", MISTRAL, False, False),
        ):
            with self.subTest(name):
                found = self.find(template)
                self.assertEqual(found["trim"], trim)
                between = {(a, b): text for a, b, text in found["between"]}
                self.assertEqual(("", "system") in between, system)
                compared = 0
                # Longer conversations than those that it was found by.
                for before in itertools.product(("system", "user", "assistant"), repeat=5):
                    chain = (*before, "user")
                    contents = [f"  {'xy' * i}\n{role} " for i, role in enumerate(chain)]
                    if not all(pair in between for pair in chat._pairs(chain)):
                        continue
                    text = chat._render(template, names, chain, contents)
                    if text is None:
                        continue
                    self.assertEqual(chat._join(between, trim, chain, contents), text)
                    compared += 1
                self.assertGreater(compared, 0)

    def test_other_forms_are_refused(self):
        numbered = CHATML.replace("m['role'] +", "m['role'] + loop.index | string +")
        for template, reason in (
            (numbered, "between user and user depends on more than these roles"),
            (CHATML.replace("m['content'] +", "m['content'] | upper +"), "each content once, in order"),
            (CHATML.replace("m['content'] +", "m['content'] | replace('\n', ' ') +"),
             "it changes contents"),
            ("{{ raise_exception('never') }}", "it takes no conversation"),
            ("{{ syntax", "it takes no conversation"),
        ):  # fmt: skip
            with self.subTest(reason), self.assertRaisesRegex(ValueError, reason):
                self.find(template)

    def test_templates_are_found_where_transformers_keeps_them(self):
        self.assertEqual(chat.of_folder(self.folder), {})
        expected = self.find(CHATML)
        (self.folder / "chat_template.jinja").unlink()
        named = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": CHATML}]
        for template in (CHATML, named):
            config = json.dumps({**CONFIG, "chat_template": template})
            (self.folder / "tokenizer_config.json").write_text(config)
            self.assertEqual(chat.of_folder(self.folder), {"chat": expected})


if __name__ == "__main__":
    unittest.main()
