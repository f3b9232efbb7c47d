//! Against figures computed by hand from the shapes of the shipped table.

use super::*;
use config::plan::Purchase;

fn geometry() -> Geometry {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/geometry.yaml");
    config::load::<Geometry>(path).unwrap().into_inner()
}

struct Case {
    geometry: Geometry,
    served: SelfHosted,
    hardware: Hardware,
}

impl Case {
    fn new(model: &str, quantisation: Quantisation, instance: &str, count: u32) -> Self {
        Self {
            geometry: geometry(),
            served: SelfHosted {
                geometry: model.to_owned(),
                quantisation,
                kv_cache: KvType::Fp16,
                context_tokens: 8192,
            },
            hardware: Hardware {
                instance: instance.to_owned(),
                count,
                parallelism: cut(1, 1),
                purchase: Purchase::OnDemand,
                utilisation: 0.9,
                scale_to_zero: false,
            },
        }
    }

    fn setting(&self) -> Setting<'_> {
        Setting {
            instance: &self.geometry.instances[&self.hardware.instance],
            model: &self.geometry.models[&self.served.geometry],
            served: &self.served,
            hardware: &self.hardware,
            working_mib: 1536.0,
        }
    }
}

fn cut(tensor: u32, pipeline: u32) -> Parallelism {
    Parallelism { tensor, pipeline }
}

fn near(value: f64, hand: f64, tolerance: f64) {
    assert!((value - hand).abs() <= tolerance, "{value}, by hand {hand}");
}

#[test]
fn seventy_billion_weights_in_four_bits_are_39_8_gb() {
    let geometry = geometry();
    let model = &geometry.models["llama-3.1-70b"];
    // 2 × 128256 × 8192 = 2.101 G in two matrices; (70.55 − 2.101) G × 4.15625 ÷ 8 + 2.101 G × 2.
    near(
        weight_bytes(model, Quantisation::AwqInt4) / 1e9,
        39.764,
        0.001,
    );
    near(weight_bytes(model, Quantisation::Bf16) / 1e9, 141.1, 0.001);
    // (70.55 − 2.101) + 2.101 × 2.
    near(weight_bytes(model, Quantisation::Fp8) / 1e9, 72.651, 0.001);
}

#[test]
fn a_token_of_seventy_billion_takes_320_kib_of_cache() {
    let geometry = geometry();
    let model = &geometry.models["llama-3.1-70b"];
    near(kv_bytes_per_token(model, KvType::Fp16), 327_680.0, 0.0);
    near(kv_bytes_per_token(model, KvType::Fp8), 163_840.0, 0.0);
    let small = &geometry.models["llama-3.1-8b"];
    near(kv_bytes_per_token(small, KvType::Fp16), 131_072.0, 0.0);
}

#[test]
fn seventy_billion_in_four_bits_do_not_fit_one_a10g() {
    let case = Case::new("llama-3.1-70b", Quantisation::AwqInt4, "g5.2xlarge", 4);
    let Verdict::WeightsTooLarge(memory) = case.setting().verdict(cut(1, 1)) else {
        unreachable!("it fits")
    };
    // 39.764 GB = 37,922 MiB; 0.9 × 22,888 MiB.
    near(memory.weights_mib, 37_922.0, 1.0);
    near(memory.budget_mib, 20_599.2, 0.1);
}

#[test]
fn four_a10g_with_shared_layers_hold_about_120_thousand_tokens() {
    let case = Case::new("llama-3.1-70b", Quantisation::AwqInt4, "g5.12xlarge", 1);
    let memory = case.setting().verdict(cut(4, 1)).memory().unwrap();
    // (20,599.2 − 37,922 ÷ 4 − 1536) MiB ÷ 80 KiB.
    near(memory.kv_tokens.unwrap(), 122_659.0, 2.0);
    assert!(case.setting().verdict(cut(4, 1)).fits());
    assert_eq!(case.setting().replicas(cut(4, 1)), 1);
}

#[test]
fn four_machines_of_one_a10g_are_one_replica_in_four_stages() {
    let case = Case::new("llama-3.1-70b", Quantisation::AwqInt4, "g5.2xlarge", 4);
    let setting = case.setting();
    assert!(setting.verdict(cut(1, 4)).fits());
    // Two stages leave 102 MiB beside 1536 MiB of work: no room for 8192 tokens.
    assert!(matches!(
        setting.verdict(cut(1, 2)),
        Verdict::ContextTooLong(_)
    ));
    assert_eq!(setting.replicas(cut(1, 4)), 1);
    assert_eq!(setting.arrangements()[0], (cut(1, 4), 1));
    // Layers are not shared between machines.
    assert_eq!(setting.replicas(cut(4, 1)), 0);
}

#[test]
fn two_machines_of_four_a10g_are_two_replicas() {
    let case = Case::new("llama-3.1-70b", Quantisation::AwqInt4, "g5.12xlarge", 2);
    let best = case.setting().arrangements()[0];
    assert_eq!(best, (cut(4, 1), 2));
}

#[test]
fn an_l40s_holds_the_weights_and_a_short_context_only() {
    let mut case = Case::new("llama-3.1-70b", Quantisation::AwqInt4, "g6e.xlarge", 4);
    // (0.9 × 45,776 − 37,922 − 1536) MiB ÷ 320 KiB.
    let memory = case.setting().verdict(cut(1, 1)).memory().unwrap();
    near(memory.kv_tokens.unwrap(), 5_569.0, 2.0);
    assert!(matches!(
        case.setting().verdict(cut(1, 1)),
        Verdict::ContextTooLong(_)
    ));
    case.served.context_tokens = 4096;
    assert_eq!(case.setting().arrangements()[0], (cut(1, 1), 4));
}

#[test]
fn eight_billion_in_sixteen_bits_fit_one_a10g() {
    let case = Case::new("llama-3.1-8b", Quantisation::Bf16, "g5.2xlarge", 4);
    let memory = case.setting().verdict(cut(1, 1)).memory().unwrap();
    // (20,599.2 − 15,316 − 1536) MiB ÷ 128 KiB.
    near(memory.kv_tokens.unwrap(), 29_977.0, 2.0);
    assert_eq!(case.setting().arrangements()[0], (cut(1, 1), 4));
}

#[test]
fn cuts_that_do_not_divide_the_model_are_named() {
    let case = Case::new("llama-3.1-70b", Quantisation::AwqInt4, "g5.48xlarge", 1);
    assert!(matches!(
        case.setting().verdict(cut(6, 1)),
        Verdict::Indivisible(_)
    ));
    assert!(matches!(
        case.setting().verdict(cut(1, 81)),
        Verdict::Indivisible(_)
    ));
    // Sixteen GPUs would repeat the eight heads of keys: each holds one.
    let wide = Case::new("llama-3.1-8b", Quantisation::Bf16, "g5.48xlarge", 2);
    let eight = wide.setting().verdict(cut(8, 1)).memory().unwrap();
    let sixteen = wide.setting().verdict(cut(16, 1)).memory().unwrap();
    assert!(sixteen.kv_tokens.unwrap() < eight.kv_tokens.unwrap() * 1.2);
}
