//! The JSON Schemas of the forms, as published in `config/schema/` and as the checker uses them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::{
    Calibration, Chain, Demo, Facts, Form, Geometry, Matrix, Objectives, Plan, PriceFile, Scenario,
    TapProcess, Variants, Workload,
};

/// The schema of one form, JSON Schema 2020-12.
#[must_use]
pub fn of<T: Form>() -> Value {
    json::<T>()
}

/// Every published schema: its file name in `config/schema/` and its text.
#[must_use]
pub fn published() -> Vec<(String, String)> {
    let text = |name: &str, schema: &Value| (format!("{name}.json"), format!("{schema:#}\n"));
    vec![
        text(Calibration::NAME, &of::<Calibration>()),
        text(Chain::NAME, &of::<Chain>()),
        text(Demo::NAME, &of::<Demo>()),
        text(Facts::NAME, &of::<Facts>()),
        text(Geometry::NAME, &of::<Geometry>()),
        text(Matrix::NAME, &of::<Matrix>()),
        text(Objectives::NAME, &of::<Objectives>()),
        text(Plan::NAME, &of::<Plan>()),
        text(PriceFile::NAME, &of::<PriceFile>()),
        text(Scenario::NAME, &of::<Scenario>()),
        text(TapProcess::NAME, &of::<TapProcess>()),
        text(Variants::NAME, &of::<Variants>()),
        text(Workload::NAME, &of::<Workload>()),
    ]
}

fn json<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}
