//! The names of the words.

/// Declares [`Key`]: each variant is a key of `words.json`.
macro_rules! keys {
    ($($name:ident),* $(,)?) => {
        /// A text that a decision says in each language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Key { $($name),* }

        impl Key {
            /// All of them: a test compares them with the file.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name in `words.json`.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

keys! {
    AgentHolds, AgentMissed, AgentPartly, AgentSeen, AgentThresholds, AgentUnknown, AxisAdded,
    AxisCallers, AxisDollars, AxisMinutes, AxisRate, AxisShare, AxisSince, AxisTokens, AxisTps,
    AxisTtft, BasisAssumed, BasisDocumented, BasisReported, BillMissing, BurstHolds, BurstMissed,
    BurstSeen, BurstThresholds, BurstUnknown, ByCapacity, ByExpectation, ByPrices, CapacityUnknown,
    CategoryCache, CategoryCost, CategoryGateway, CategoryGovernance, CategoryOperations,
    CategoryPerformance, ChangeAgent, ChangeArtefact, ChangeCost, ChangeFacts, ChangeOverhead,
    ChangeQuota, ChangeRouting, ChangeStability, ChangeTenants, ChangeThresholds, ChartBurst,
    ChartCache, ChartCost, ChartLegs, ChartSoak, ChartSpread, ChartTokens, ChartTps, ChartTtft,
    CheaperEverywhere, ClaimCovers, ClaimOfHeader, ComparisonRefused, Contents, CrossingSeen,
    Crossings, Data, DifferenceSeen, Download, DriftSeen, DriveAgent, DriveAlone, DriveBlackBox,
    DriveCapacity, DriveClosed, DriveCourse, DriveExperiment, DriveFlooded, DrivePhase, DriveShare,
    DriveShareOfEach, DriveTenant, DriveTogether, DriveTrace, Evidence, Few, Guessed, GuideEnds,
    GuideNoWorkload, GuideProvisional, GuideReached, HeadAnswer, HeadAtHigh, HeadAtLow, HeadBefore,
    HeadCategory, HeadChain, HeadCheaperAbove, HeadClaimed, HeadConfiguration, HeadCovers,
    HeadDriven, HeadFigure, HeadInput, HeadInterval, HeadMeasured, HeadMetric, HeadNoise, HeadNow,
    HeadQuestion, HeadRate, HeadRun, HeadScenario, HeadSource, HeadStarted, HeadStatement,
    HeadTopic, HeadValid, High, ImportAlike, ImportFaster, ImportMixed, ImportOpen, ImportSlower,
    Inner, KvSeen, LeakSeen, LeaksSeen, LegAnswer, LegRequest, LimitSeen, LimitsAreStated, Low,
    MedianOfRepetitions, MetricAdded, MetricBuild, MetricColdStart, MetricE2e, MetricGatewayCpu,
    MetricGatewayMemory, MetricIdle, MetricIsolation, MetricKvCache, MetricMonth, MetricPerMillion,
    MetricPrecision, MetricPromptCache, MetricRecovery, MetricSemanticCache, MetricSkills,
    MetricThroughput, MetricTps, MetricTtft, NameA1, NameA2, NameB1, NameB2, NameBaseline,
    NameBaselinePlus, NameProvisioned, NeighbourSeen, No, NoBill, NoClaims, NoCrossings, NoFact,
    NoInterval, NoUpperEnd, NotApplicable, NotDrivenThere, NotInRun, NotMeasured, NotTold, NotValid,
    NothingToDraw, NothingValid, ObjectiveHolds, ObjectiveMissed, ObjectiveUnknown, ObjectiveUpTo,
    OnlyExpected, Outer, OverheadMatters, OverheadNegligible, OverheadOpen, OverheadSaturated,
    OverheadThresholds, Path, Question1, Question10, Question2, Question3, Question4, Question5,
    Question6, Question7, Question8, Question9, RoutingBills, RoutingDoesNotReverse,
    RoutingNeedsCapacities, RoutingReverses, RunThis, Saturated, Scenarios, SectionAgents,
    SectionBaseline, SectionCaching, SectionChanges, SectionCost, SectionGateways, SectionGuide,
    SectionImport, SectionLosses, SectionMigration, SectionObservability, SectionRuns,
    SectionSummary, SectionTable, Series, ServingSeen, ServingThresholds, Simulated, SimulatedNote,
    StabilitySeen, StabilityThresholds, StabilityUnknown, Stable, StableShort, StandInsDoNotAnswer,
    Stated, StatedNote, StepCost, StepEngine, StepGatewayPlain, StepGatewayRouted, StepGovernance,
    StepNear, StepNewest, StepOwnModel, StepRepetition, StepRouting, StepSovereignty,
    SummaryManaged, SummaryNothing, SummaryOpen, SummaryOwn, SummaryRuns, TenQuestions,
    TenantThresholds, TenantsHold, TenantsMissed, TenantsUnknown, Thresholds, Title, TooFewCalls,
    Tornado, TrafficOfBills, TurnaroundSeen, Unknown, Unstable, VariantsSeen, VerdictDepends,
    VerdictNo, VerdictUnanswered, VerdictYes, WhyBills, WhyGovernance, WhyNoBills, WhyOverhead,
    WhyOverheadUnknown, WhyRepetition, WhyRouting, WhyRoutingUnknown, WhyWorkload, Withheld,
    WorkloadIs, WouldBe, WouldChange, Yes,
}
