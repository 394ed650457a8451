//! Pure: which of the models that there are may do a task now, best first.
//!
//! What a creator chose goes before what the matrix names, and what costs nothing may think in
//! any tier. A weak model comes after those that are not; a dearer one must never stand in for
//! one that fails, unless the matrix names it.

use automaton_core::model::{InferenceTask, ModelId};
use automaton_core::tier::{ModelTier, SurvivalTier};

use super::matrix::{RoutedModel, RoutingMatrix};

/// Known properties of one model.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteRow<'a> {
    pub(super) id: &'a ModelId,
    /// Roles, by the configuration.
    pub(super) roles: &'a [ModelTier],
    /// True if its answers cost nothing.
    pub(super) is_free: bool,
    /// True if it needs more guidance than others.
    pub(super) is_weak: bool,
    /// True if it failed recently and is asked last.
    pub(super) is_open: bool,
}

/// Requirements of a route.
#[derive(Debug, Clone, Copy)]
pub struct RouteQuery {
    /// Survival tier, if it is known.
    pub tier: Option<SurvivalTier>,
    /// The task.
    pub task: InferenceTask,
    /// True if no answer that costs can be paid.
    pub is_broke: bool,
}

/// Settings for every route.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoutePreference<'a> {
    /// The model that stands in the usual one's place by choice.
    pub(super) chosen: Option<&'a ModelId>,
    /// True if another model may stand in.
    pub(super) may_fall_back: bool,
}

impl RouteQuery {
    /// The tier whose rules hold: an automaton that does not know its means is not poor.
    pub(super) fn rules_of(&self) -> SurvivalTier {
        self.tier.unwrap_or(SurvivalTier::Normal)
    }
}

/// Reason for which a model is not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelSkipReason {
    /// Its answers cost, and nothing can be paid.
    Unpaid,
    /// Another may not stand in.
    NoFallback,
}

impl ModelSkipReason {
    /// The reason in words, as the end of a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unpaid => "its answers cost, and there are too few credits",
            Self::NoFallback => "`modelStrategy.enableModelFallback` is off",
        }
    }
}

/// Places of the rows that may answer, best first, and of those that may not, with the reason.
pub(super) type Selection = (Vec<usize>, Vec<(usize, ModelSkipReason)>);

/// Which models may do a task.
pub(super) fn select(
    matrix: &RoutingMatrix,
    rows: &[RouteRow<'_>],
    query: &RouteQuery,
    preference: RoutePreference<'_>,
) -> Selection {
    let mut skipped = Vec::new();
    let mut places = named_models(matrix, rows, query, preference.chosen);
    places.retain(|at| {
        let pays = rows[*at].is_free || !query.is_broke;
        if !pays {
            skipped.push((*at, ModelSkipReason::Unpaid));
        }
        pays
    });
    if !preference.may_fall_back {
        skipped.extend(
            places.drain(1.min(places.len())..).map(|at| (at, ModelSkipReason::NoFallback)),
        );
    }
    // Whoever failed lately is asked after the others, and who is weak after who is not; all keep
    // their order.
    places.sort_by_key(|at| (rows[*at].is_open, rows[*at].is_weak));
    (places, skipped)
}

/// The models that the matrix names, and all that cost nothing.
fn named_models(
    matrix: &RoutingMatrix,
    rows: &[RouteRow<'_>],
    query: &RouteQuery,
    chosen: Option<&ModelId>,
) -> Vec<usize> {
    let by_id = |id: &ModelId| places(rows, |row| row.id == id);
    let mut found = Vec::new();
    for model in matrix.models(query.rules_of(), query.task) {
        match (model, chosen) {
            (RoutedModel::Id(id), _) => found.extend(by_id(&id)),
            (RoutedModel::Role(ModelTier::Usual), Some(chosen)) => {
                found.extend(by_id(chosen));
                found.extend(of_role(rows, ModelTier::Usual));
            }
            (RoutedModel::Role(role), _) => found.extend(of_role(rows, role)),
        }
    }
    let is_ruled = !matrix.models(query.rules_of(), query.task).is_empty();
    if found.is_empty() && is_ruled {
        // A rule that names nobody who is there keeps nobody from thinking.
        found = of_role(rows, ModelTier::Usual);
    }
    found.extend(places(rows, |row| row.is_free && !row.roles.is_empty()));
    let mut seen = vec![false; rows.len()];
    found.retain(|at| !std::mem::replace(&mut seen[*at], true));
    found
}

/// The models of a role; where there is none, of the next dearer one.
fn of_role(rows: &[RouteRow<'_>], role: ModelTier) -> Vec<usize> {
    use ModelTier::{Critical, LowCompute, Usual};
    let found = places(rows, |row| row.roles.contains(&role));
    match role {
        Critical if found.is_empty() => of_role(rows, LowCompute),
        LowCompute if found.is_empty() => of_role(rows, Usual),
        Usual | LowCompute | Critical => found,
    }
}

fn places(rows: &[RouteRow<'_>], fits: impl Fn(&RouteRow<'_>) -> bool) -> Vec<usize> {
    (0..rows.len()).filter(|at| fits(&rows[*at])).collect()
}

#[cfg(test)]
mod tests {
    use ModelTier::{Critical, LowCompute, Usual};

    use super::*;

    /// A model in short: name, roles, and of `f`ree, `w`eak and `o`pen what it is.
    fn rows<'a>(models: &'a [(ModelId, Vec<ModelTier>, &str)]) -> Vec<RouteRow<'a>> {
        let row = |(id, roles, is): &'a (ModelId, Vec<ModelTier>, &str)| {
            let [is_free, is_weak, is_open] = ['f', 'w', 'o'].map(|mark| is.contains(mark));
            RouteRow { id, roles, is_free, is_weak, is_open }
        };
        models.iter().map(row).collect()
    }

    fn model(
        id: &str,
        roles: &[ModelTier],
        is: &'static str,
    ) -> (ModelId, Vec<ModelTier>, &'static str) {
        (id.into(), roles.to_vec(), is)
    }

    /// The order in which models are asked, by name.
    fn order(
        models: &[(ModelId, Vec<ModelTier>, &'static str)],
        tier: Option<SurvivalTier>,
        with: impl Fn(&mut RouteQuery, &mut RoutePreference<'_>),
    ) -> String {
        let matrix = RoutingMatrix::built_in().unwrap();
        let task = InferenceTask::AgentTurn;
        let mut query = RouteQuery { tier, task, is_broke: false };
        let mut preference = RoutePreference { chosen: None, may_fall_back: true };
        with(&mut query, &mut preference);
        let rows = rows(models);
        let (found, skipped) = select(&matrix, &rows, &query, preference);
        assert!(skipped.iter().all(|(at, _)| !found.contains(at)));
        let names: Vec<&str> = found.iter().map(|at| rows[*at].id.as_str()).collect();
        names.join(" ")
    }

    fn usual(_: &mut RouteQuery, _: &mut RoutePreference<'_>) {}

    fn alone(_: &mut RouteQuery, preference: &mut RoutePreference<'_>) {
        preference.may_fall_back = false;
    }

    #[test]
    fn each_tier_has_its_models_and_a_missing_one_is_the_next_dearer() {
        use SurvivalTier as T;
        let (big, mini, nano) =
            (model("big", &[Usual], ""), model("mini", &[LowCompute], ""), |roles: &[_]| {
                model("nano", roles, "")
            });
        let all = [big.clone(), mini.clone(), nano(&[Critical])];
        for (tier, wanted) in [
            (None, "big mini"),
            (Some(T::High), "big mini"),
            (Some(T::Normal), "big mini"),
            (Some(T::LowCompute), "mini"),
            (Some(T::Critical), "nano"),
            (Some(T::Dead), ""),
        ] {
            assert_eq!(order(&all, tier, usual), wanted, "{tier:?}");
        }
        assert_eq!(order(&[big.clone(), mini], Some(T::Critical), usual), "mini");
        assert_eq!(order(&[big.clone(), nano(&[Critical])], Some(T::LowCompute), usual), "big");
        assert_eq!(order(std::slice::from_ref(&big), Some(T::Critical), usual), "big");
        let both = [big.clone(), nano(&[LowCompute, Critical])];
        assert_eq!(order(&both, Some(T::Normal), usual), "big nano");
        let more = [big, nano(&[LowCompute]), model("gpt-5.3", &[], ""), model("other", &[], "f")];
        assert_eq!(order(&more, Some(T::High), usual), "big gpt-5.3 nano", "others wait");
    }

    #[test]
    fn another_seller_comes_before_a_lesser_model() {
        let all = [
            model("big", &[Usual], ""),
            model("mini", &[LowCompute], ""),
            model("else", &[Usual], ""),
            model("little", &[LowCompute], ""),
        ];
        assert_eq!(order(&all, None, usual), "big else mini little");
        assert_eq!(order(&all, None, alone), "big");
    }

    #[test]
    fn what_failed_lately_is_asked_last() {
        let all = [
            model("big", &[Usual], "o"),
            model("mini", &[LowCompute], ""),
            model("else", &[Usual], "o"),
        ];
        assert_eq!(order(&all, None, usual), "mini big else");
        assert_eq!(order(&all[..1], None, usual), "big", "and never left out");
        assert_eq!(order(&all, None, alone), "big");
    }

    #[test]
    fn what_is_free_thinks_in_any_tier_and_what_is_weak_where_no_other_can() {
        let broke = |query: &mut RouteQuery, _: &mut RoutePreference<'_>| query.is_broke = true;
        let weak = [model("big", &[Usual], ""), model("local", &[Usual], "fw")];
        assert_eq!(order(&weak, None, usual), "big local");
        let first = [weak[1].clone(), weak[0].clone()];
        assert_eq!(order(&first, None, usual), "big local", "the weak one is asked last");
        assert_eq!(order(&weak, Some(SurvivalTier::Dead), broke), "local");
        assert_eq!(order(&weak, Some(SurvivalTier::Critical), broke), "local");
        assert_eq!(order(&weak[..1], Some(SurvivalTier::Critical), broke), "");
        let away = [model("big", &[Usual], "o"), weak[1].clone()];
        assert_eq!(order(&away, None, usual), "local big");
        let strong = [model("big", &[Usual], ""), model("ollama", &[Usual], "f")];
        assert_eq!(order(&strong, Some(SurvivalTier::LowCompute), usual), "big ollama");
        assert_eq!(order(&weak[1..], None, usual), "local", "its only one");
    }

    #[test]
    fn a_choice_goes_before_the_usual_model_and_no_further() {
        let mine = ModelId::from("mine");
        let all =
            [model("big", &[Usual], ""), model("mini", &[LowCompute], ""), model("mine", &[], "")];
        let order = |tier| {
            let matrix = RoutingMatrix::built_in().unwrap();
            let task = InferenceTask::AgentTurn;
            let preference = RoutePreference { chosen: Some(&mine), may_fall_back: true };
            let query = RouteQuery { tier, task, is_broke: false };
            select(&matrix, &rows(&all), &query, preference).0
        };
        assert_eq!(order(None), [2, 0, 1]);
        assert_eq!(order(Some(SurvivalTier::LowCompute)), [1], "who is poor lives by the rules");
    }
}
