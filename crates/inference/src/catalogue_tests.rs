//! Properties of a model with several claims.

use super::*;
use automaton_core::money::Microcents;
use automaton_core::wire::cloud::ModelPricing;

#[test]
fn finds_a_row_by_any_spelling() {
    for id in ["gpt-5.2", "GPT-5.2", "openai/gpt-5.2", "gpt-5.2-2025-12-11"] {
        let info = model(id).unwrap();
        assert_eq!((info.dialect, info.note), (RequestDialect::Reasoning, None), "{id}");
        assert_eq!(info.id.as_str(), id);
    }
    for id in ["SmolLM2-135M-Instruct", "SmolLM2 135M Instruct", "smollm2-135m"] {
        let info = own_model(id).unwrap();
        assert!(info.weak && info.note.is_some(), "{id}");
        assert_eq!(info.prices, ModelPrices::default());
    }
    assert!(!model("gpt-5.2").unwrap().weak);
}

#[test]
fn the_families_of_the_day_are_known() {
    let window = |id: &str| {
        let info = model(id).unwrap();
        assert_eq!(info.note, None, "{id}");
        (info.context_tokens, info.max_output_tokens.unwrap())
    };
    assert_eq!(window("claude-sonnet-4-5-20250929"), (200_000, 64_000));
    assert_eq!(window("us.anthropic.claude-opus-4-1-20250805-v1:0"), (200_000, 32_000));
    assert_eq!(window("gpt-5.2-pro"), (400_000, 128_000));
    assert_eq!(window("models/gemini-2.5-pro"), (1_048_576, 65_536));
    assert_eq!(window("meta-llama/Llama-3.3-70B-Instruct"), (131_072, 8192));
    assert_eq!(window("Qwen/Qwen3-Coder-480B-A35B-Instruct"), (262_144, 65_536));
    assert_eq!(window("deepseek-chat"), (131_072, 8192));
    assert_eq!(window("mistral-large-latest"), (131_072, 16_384));
    assert_eq!(window("moonshotai/kimi-k2-thinking"), (262_144, 32_768));
    assert_eq!(window("zai-org/GLM-4.6"), (200_000, 131_072));
    assert_eq!(window("o4-mini"), (200_000, 100_000));
    assert_eq!(window("grok-4"), (131_072, 16_384));
}

#[test]
fn every_row_is_sound() {
    let rows: Vec<CatalogueRow> = serde_json::from_str(ROWS).unwrap();
    let mut seen: Vec<(String, bool)> = Vec::new();
    for row in &rows {
        let name = &row.models[0];
        let (year, month) = row.at.split_once('-').unwrap();
        let dated = (2024..=2026).contains(&year.parse().unwrap())
            && (1..=12).contains(&month.parse::<u32>().unwrap());
        assert!(dated, "{name} {}", row.at);
        assert!((4096..=2_000_000).contains(&row.context_tokens), "{name}");
        assert!(row.max_output_tokens.is_none_or(|most| most <= row.context_tokens), "{name}");
        let ModelPrices {
            input_per_million: input,
            cached_per_million: cached,
            cache_write_per_million: _,
            output_per_million: output,
        } = row.prices;
        // What makes vectors says nothing.
        let is_mute = name.contains("-embed") && output == Microcents::ZERO;
        assert!(cached <= input && (input <= output || is_mute), "{name}");
        let free = row.weak || name == "script";
        assert_eq!(input == Microcents::ZERO, free, "{name}");
        // A row that comes too late is never found.
        for pattern in &row.models {
            let (text, any) = match pattern.strip_suffix('*') {
                Some(text) => (text.to_owned(), true),
                None => (pattern.clone(), false),
            };
            let hidden = seen.iter().find(|(early, wild)| {
                if *wild { text.starts_with(early) } else { *early == text && !any }
            });
            assert_eq!(hidden, None, "{pattern}");
            seen.push((text, any));
        }
    }
    assert!(rows.len() > 80 && rows.last().unwrap().is_default());
}

#[test]
fn what_is_cached_costs_what_the_sellers_tables_say() {
    let cached = |id: &str| model(id).unwrap().prices.cached_per_million.units();
    assert_eq!(cached("gpt-5.2"), 18_000_000);
    assert_eq!(cached("gpt-5.2-2025-12-11"), 18_000_000);
    assert_eq!(cached("gpt-5.3-codex"), 20_000_000);
    assert_eq!(cached("gpt-5-mini"), 8_000_000);
    assert_eq!((cached("grok-3"), cached("grok-3-mini")), (125_000_000, 15_000_000));
    assert_eq!(cached("gpt-5.2-pro"), 2_100_000_000, "its seller has no such price");
    let rows: Vec<CatalogueRow> = serde_json::from_str(ROWS).unwrap();
    for row in rows.iter().filter(|row| !row.open && !row.weak) {
        let ModelPrices { input_per_million, cached_per_million, output_per_million, .. } =
            row.prices;
        // Vectors have no cache, and a fallback for a whole family knows of no seller.
        let is_family = ["claude*", "gemini*", "*", "script"].contains(&row.models[0].as_str());
        let is_mute = output_per_million == Microcents::ZERO;
        if cached_per_million == input_per_million && !is_mute && !is_family {
            let source = row.source.as_deref().unwrap_or_default();
            assert!(source.starts_with("https://"), "{}: whose table has no price?", row.models[0]);
        }
    }
}

#[test]
fn an_unknown_model_is_small_dear_and_says_where_to_say_more() {
    for id in ["some-model:70b", "gpt-5.20", "*", ""] {
        let info = model(id).unwrap();
        assert_eq!((info.context_tokens, info.max_output_tokens), (8192, None), "{id}");
        assert!(info.prices.output_per_million > Microcents::new(1_400_000_000), "{id}");
        let note = info.note.unwrap();
        for part in [id, "catalogue", "`brain.contextTokens`", "`brain.prices`"] {
            assert!(note.contains(part), "{id}: {note}");
        }
    }
    let own = own_model("llama3.3:70b").unwrap();
    assert_eq!((own.prices, own.context_tokens), (ModelPrices::default(), 8192));
    let note = own.note.unwrap();
    assert!(note.contains("brain.contextTokens") && !note.contains("brain.prices"), "{note}");
    assert_ne!(own_model("gpt-5.2").unwrap().prices, ModelPrices::default());
}

fn prices(units: i64) -> ModelPrices {
    let one = Microcents::new(units);
    ModelPrices {
        input_per_million: one,
        cached_per_million: one,
        cache_write_per_million: None,
        output_per_million: one,
    }
}

#[test]
fn the_creator_is_believed_before_the_server_and_the_server_before_the_catalogue() {
    let nobody = ModelClaims::default();
    let creator = ModelClaims {
        context_tokens: Some(50_000),
        max_output_tokens: Some(900),
        prices: Some(prices(0)),
        dialect: None,
    };
    let server = |window, price| ModelClaims {
        context_tokens: Some(window),
        max_output_tokens: Some(700),
        prices: Some(prices(price)),
        dialect: None,
    };
    let of = |id, place, creator: &ModelClaims, server: &ModelClaims| {
        merge_claims(id, place, creator, server).unwrap()
    };
    // Who is asked, of which model, where: which window, and whether it is free.
    let dear = false;
    let free = true;
    let table = [
        ("gpt-5.2", ModelHosting::Hosted, nobody, nobody, 400_000, dear),
        ("gpt-5.2", ModelHosting::Hosted, nobody, server(9_000_000, 0), 400_000, dear),
        ("gpt-5.2", ModelHosting::Hosted, nobody, server(9_000, 0), 9_000, dear),
        ("gpt-5.2", ModelHosting::Hosted, creator, server(9_000, 7), 50_000, free),
        ("gpt-5.2", ModelHosting::Own, nobody, server(9_000_000, 0), 400_000, dear),
        ("gpt-5.2", ModelHosting::Here, nobody, server(9_000_000, 0), 9_000_000, free),
        ("gpt-5.2", ModelHosting::Here, nobody, nobody, 400_000, dear),
        ("qwen3:8b", ModelHosting::Here, nobody, nobody, 8192, free),
        ("qwen3:8b", ModelHosting::Here, nobody, server(65_536, 0), 65_536, free),
        ("qwen3:8b", ModelHosting::Own, nobody, server(65_536, 0), 40_960, dear),
        ("qwen3:8b", ModelHosting::Own, nobody, nobody, 8192, dear),
        ("qwen3:8b", ModelHosting::Own, creator, nobody, 50_000, free),
        ("qwen3:8b", ModelHosting::Hosted, nobody, server(65_536, 0), 40_960, dear),
        ("unheard-of", ModelHosting::Hosted, nobody, server(65_536, 0), 65_536, dear),
        ("unheard-of", ModelHosting::Own, nobody, server(65_536, 0), 65_536, dear),
        ("unheard-of", ModelHosting::Here, nobody, server(65_536, 0), 65_536, free),
        ("unheard-of", ModelHosting::Hosted, creator, nobody, 50_000, free),
    ];
    for (id, place, creator, server, window, free) in table {
        let info = of(id, place, &creator, &server);
        let found = (info.context_tokens, info.prices == ModelPrices::default());
        assert_eq!(found, (window, free), "{id} {place:?} {creator:?} {server:?}");
    }
    assert_eq!(
        of("gpt-5.2", ModelHosting::Here, &creator, &server(1, 1)).max_output_tokens,
        Some(900)
    );
    assert_eq!(
        of("gpt-5.2", ModelHosting::Here, &nobody, &server(1, 1)).max_output_tokens,
        Some(1)
    );
    let told = of("unheard-of", ModelHosting::Hosted, &nobody, &server(9000, i64::MAX));
    assert_eq!(told.prices, prices(i64::MAX), "a dearer price is believed");
    assert_eq!(told.note, None);
    // Who has a server on another machine of its own is told what to write.
    for id in ["qwen3:8b", "unheard-of"] {
        let note = of(id, ModelHosting::Own, &nobody, &server(9000, 0)).note.unwrap();
        assert!(note.contains("`brain.prices`") && note.contains("--prices 0,0"), "{note}");
        assert_eq!(of(id, ModelHosting::Own, &creator, &nobody).note, None);
        assert_eq!(of(id, ModelHosting::Here, &nobody, &server(9000, 0)).note, None);
    }
    assert_eq!(of("qwen3:8b", ModelHosting::Hosted, &nobody, &nobody).note, None);
    let said = ModelClaims { dialect: Some(RequestDialect::Plain), ..nobody };
    assert_eq!(of("gpt-5.2", ModelHosting::Hosted, &said, &nobody).dialect, RequestDialect::Plain);
}

#[test]
fn a_cloud_that_bills_says_what_a_model_costs_and_how_large_it_is() {
    let pricing = ModelPricing::new(Microcents::ZERO, Microcents::ZERO, None, Microcents::new(1));
    let row: ModelRow = serde_json::from_value(serde_json::json!({
        "id": "gpt-5.2", "context_window": 9_000_000, "max_tokens": 700,
        "parameter_style": "max_tokens", "pricing": pricing.unwrap(),
    }))
    .unwrap();
    let info = served(&row);
    assert_eq!((info.context_tokens, info.max_output_tokens), (9_000_000, Some(700)));
    assert!(info.prices.output_per_million < model("gpt-5.2").unwrap().prices.output_per_million);
    assert_eq!(info.dialect, RequestDialect::Classic);
    let reasoning = ModelRow { parameter_style: "max_completion_tokens".to_owned(), ..row };
    assert_eq!(served(&reasoning).dialect, RequestDialect::Reasoning);
}
