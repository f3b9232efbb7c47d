//! Tables of variants whose cells could not be filled are refused with their place.

use config::Variants;

const TABLE: &str = "\
scenario: 2
variants:
  - {name: awq, kind: quantisation, sets: --quantization awq, cells: [{on: vLLM, chain: vllm-awq}]}
  - {name: fp8, kind: quantisation, sets: --quantization fp8, cells: [{on: vLLM, chain: vllm-fp8}]}
";

#[test]
fn a_cell_has_a_chain_of_its_own_or_a_reason() {
    assert!(config::from_text::<Variants>("v.yaml", TABLE).is_ok());
    for (from, to, told) in [
        (
            "chain: vllm-fp8",
            "chain: vllm-awq",
            "v.yaml:4:89: the name `vllm-awq` is taken at v.yaml:3:89",
        ),
        ("name: fp8", "name: awq", "the name `awq` is taken"),
        (", chain: vllm-awq", "", "write either the `chain`"),
        (
            "chain: vllm-awq",
            "chain: vllm-awq, not_offered: why",
            "write either the `chain`",
        ),
        ("chain: vllm-awq", "chain: a/b", "letters, digits"),
        (
            "kind: quantisation",
            "kind: quantization",
            "did you mean `quantisation`",
        ),
    ] {
        assert!(TABLE.contains(from), "{from}");
        match config::from_text::<Variants>("v.yaml", &TABLE.replacen(from, to, 1)) {
            Ok(_) => panic!("accepted: {to}"),
            Err(error) => assert!(error.to_string().contains(told), "{to}: {error}"),
        }
    }
}
