//! Does a model fit, and how many replicas are there? Arithmetic from the shapes of model and machine alone: an
//! engine may still need more, and says so when it starts.

use config::geometry::{Geometry, Instance, ModelGeometry};
use config::plan::{Hardware, KvType, Parallelism, Quantisation, SelfHosted};

const MIB: f64 = 1_048_576.0;

/// Bits of one weight of a layer, the scales and zeros of its group included.
///
/// Groups of 128 weights have a scale of 16 bits and a zero of 4: 4 + 20 ÷ 128 bits.
#[must_use]
pub fn bits_per_weight(quantisation: Quantisation) -> f64 {
    match quantisation {
        Quantisation::Bf16 => 16.0,
        Quantisation::Fp8 => 8.0,
        Quantisation::AwqInt4 | Quantisation::GptqInt4 => 4.0 + 20.0 / 128.0,
    }
}

/// Bytes of all weights. Embedding and output head stay at 16 bits.
#[must_use]
pub fn weight_bytes(model: &ModelGeometry, quantisation: Quantisation) -> f64 {
    layer_bytes(model, quantisation) + model.embedding_parameters() * 2.0
}

fn layer_bytes(model: &ModelGeometry, quantisation: Quantisation) -> f64 {
    let parameters = model.parameters_billion * 1e9 - model.embedding_parameters();
    parameters * bits_per_weight(quantisation) / 8.0
}

/// Bytes of keys and values of one token, over all layers.
#[must_use]
pub fn kv_bytes_per_token(model: &ModelGeometry, kv: KvType) -> f64 {
    2.0 * f64::from(model.layers)
        * f64::from(model.kv_heads)
        * f64::from(model.head_size)
        * kv_value_bytes(kv)
}

fn kv_value_bytes(kv: KvType) -> f64 {
    match kv {
        KvType::Fp16 => 2.0,
        KvType::Fp8 => 1.0,
    }
}

/// What the fullest GPU of one replica holds, in MiB, and what that leaves for the KV cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// What the engine may use of the GPU.
    pub budget_mib: f64,
    /// Weights.
    pub weights_mib: f64,
    /// Activations and CUDA graphs.
    pub working_mib: f64,
    /// Tokens that the KV cache of the replica holds; `None` where the weights alone do not fit.
    pub kv_tokens: Option<f64>,
}

/// Whether a replica can run.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It can.
    Fits(Memory),
    /// Its weights leave no room.
    WeightsTooLarge(Memory),
    /// Its KV cache does not hold one call of the longest context: the engine refuses to start.
    ContextTooLong(Memory),
    /// The model cannot be cut like this, and why.
    Indivisible(String),
}

impl Verdict {
    /// Whether it can run.
    #[must_use]
    pub fn fits(&self) -> bool {
        matches!(self, Self::Fits(_))
    }

    /// The memory; `None` where the cut itself is wrong.
    #[must_use]
    pub fn memory(&self) -> Option<Memory> {
        match self {
            Self::Fits(memory) | Self::WeightsTooLarge(memory) | Self::ContextTooLong(memory) => {
                Some(*memory)
            }
            Self::Indivisible(_) => None,
        }
    }
}

/// What a replica is made of, apart from how it is cut.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The machine.
    pub instance: &'a Instance,
    /// The model's shape.
    pub model: &'a ModelGeometry,
    /// The model's form.
    pub served: &'a SelfHosted,
    /// How many machines there are, and how much of each GPU may be used.
    pub hardware: &'a Hardware,
    /// Memory of each GPU for activations and graphs, in MiB.
    pub working_mib: f64,
}

impl<'a> Setting<'a> {
    /// The plan's setting, by the geometry table; `None` where the table lacks the model or the machine.
    #[must_use]
    pub fn of(plan: &'a config::Plan, geometry: &'a Geometry) -> Option<Self> {
        Some(Self {
            instance: geometry.instances.get(&plan.hardware.instance)?,
            model: geometry.models.get(&plan.models.self_hosted.geometry)?,
            served: &plan.models.self_hosted,
            hardware: &plan.hardware,
            working_mib: geometry.working_mib as f64,
        })
    }

    /// GPUs of all machines.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        self.instance.gpus.saturating_mul(self.hardware.count)
    }

    /// Whether one replica fits when it is cut so.
    ///
    /// Stages get the layers as evenly as they go. The fullest GPU has the stage with the most layers and one of
    /// the two embedding matrices, or both where there is one stage.
    #[must_use]
    pub fn verdict(&self, cut: Parallelism) -> Verdict {
        if let Some(why) = self.indivisible(cut) {
            return Verdict::Indivisible(why);
        }
        let memory = self.memory(cut);
        match memory.kv_tokens {
            None => Verdict::WeightsTooLarge(memory),
            Some(tokens) if tokens < f64::from(self.served.context_tokens) => {
                Verdict::ContextTooLong(memory)
            }
            Some(_) => Verdict::Fits(memory),
        }
    }

    fn indivisible(&self, cut: Parallelism) -> Option<String> {
        if cut.tensor == 0 || cut.pipeline == 0 {
            return Some("a replica has at least one GPU".to_owned());
        }
        if !self.model.heads.is_multiple_of(cut.tensor) {
            return Some(format!(
                "{} attention heads do not divide among {} GPUs",
                self.model.heads, cut.tensor
            ));
        }
        (cut.pipeline > self.model.layers).then(|| {
            format!(
                "{} layers do not make {} stages",
                self.model.layers, cut.pipeline
            )
        })
    }

    fn memory(&self, cut: Parallelism) -> Memory {
        let tensor = f64::from(cut.tensor);
        let stage_layers = self.model.layers.div_ceil(cut.pipeline);
        let share = f64::from(stage_layers) / f64::from(self.model.layers);
        // Two stages and more: the first has the embedding, the last the head.
        let one_matrix = f64::from(self.model.vocabulary) * f64::from(self.model.hidden);
        let embeddings = if cut.pipeline == 1 {
            self.model.embedding_parameters()
        } else {
            one_matrix
        };
        let weights =
            (layer_bytes(self.model, self.served.quantisation) * share + embeddings * 2.0) / tensor;
        let budget_mib = self.instance.gpu_memory_mib as f64 * self.hardware.utilisation;
        let weights_mib = weights / MIB;
        let free = (budget_mib - weights_mib - self.working_mib) * MIB;
        // Heads of keys and values are repeated where there are fewer than GPUs.
        let kv_heads = f64::from(self.model.kv_heads.div_ceil(cut.tensor));
        let per_token = 2.0
            * f64::from(stage_layers)
            * kv_heads
            * f64::from(self.model.head_size)
            * kv_value_bytes(self.served.kv_cache);
        Memory {
            budget_mib,
            weights_mib,
            working_mib: self.working_mib,
            kv_tokens: (free > 0.0).then(|| (free / per_token).floor()),
        }
    }

    /// Replicas that the machines hold when each is cut so. GPUs that share layers stay on one machine: between
    /// machines of this kind the network is too slow for it.
    #[must_use]
    pub fn replicas(&self, cut: Parallelism) -> u32 {
        if cut.tensor == 0 || cut.pipeline == 0 {
            return 0;
        }
        let groups_of_one = self.instance.gpus / cut.tensor;
        groups_of_one.saturating_mul(self.hardware.count) / cut.pipeline
    }

    /// The cuts that fit these machines, the one with the most replicas first, and of those that with the most GPUs
    /// and the fewest stages. Empty where the model does not fit at all.
    #[must_use]
    pub fn arrangements(&self) -> Vec<(Parallelism, u32)> {
        let tensors = (0..=6)
            .map(|power| 1_u32 << power)
            .filter(|tensor| *tensor <= self.instance.gpus);
        let mut found: Vec<(Parallelism, u32)> = tensors
            .flat_map(|tensor| {
                let stages = self.gpus().min(64) / tensor;
                (1..=stages).map(move |pipeline| Parallelism { tensor, pipeline })
            })
            .filter(|cut| self.verdict(*cut).fits())
            .map(|cut| (cut, self.replicas(cut)))
            .filter(|(_, replicas)| *replicas > 0)
            .collect();
        found.sort_by_key(|(cut, replicas)| {
            let gpus = cut.tensor * cut.pipeline;
            (
                std::cmp::Reverse(*replicas),
                std::cmp::Reverse(gpus),
                cut.pipeline,
            )
        });
        found
    }
}

#[cfg(test)]
mod tests;
