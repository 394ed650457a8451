//! Tests of the generated code, and of refused input.

use quote::quote;

use super::*;

fn written(input: TokenStream) -> String {
    written_by(implement, input)
}

/// Returns the generated code without spaces, or the error.
pub(crate) fn written_by(
    implement: fn(&DeriveInput) -> Result<TokenStream>,
    input: TokenStream,
) -> String {
    let input = syn::parse2(input).expect("a type");
    match implement(&input) {
        Ok(tokens) => tokens.to_string().replace(' ', ""),
        Err(error) => format!("refused: {error}"),
    }
}

#[test]
fn a_variant_answers_its_class_and_hint() {
    let text = written(quote! {
        enum E {
            #[class(User, hint = "Look at {path}.")]
            A { path: String, cause: u8 },
            #[class(Internal, hint = "Wait.")]
            B(u8, u8),
            #[class(Transient)]
            C,
            #[class(Config, hint = "See {}.", _0.display())]
            D(u8),
        }
    });
    for arm in [
        "Self::A{path,cause}=>::automaton_core::error::ErrorClass::User,",
        "Self::A{path,cause}=>Some(format!(\"Lookat{path}.\")),",
        "Self::B{0:_0,1:_1}=>Some(\"Wait.\".to_owned()),",
        "Self::C=>::automaton_core::error::ErrorClass::Transient,",
        "Self::C=>None,",
        "Self::D{0:_0}=>Some(format!(\"See{}.\",_0.display())),",
    ] {
        assert!(text.contains(arm), "{arm} in {text}");
    }
}

#[test]
fn a_class_can_be_the_causes_or_computed() {
    let text = written(quote! {
        enum E {
            A(#[from] Inner),
            #[class(from, hint = "Wait.")]
            B { id: u8, source: Inner },
            #[class(kind = of(*status), hint = remedy.clone())]
            C { status: u8, remedy: Option<String> },
        }
    });
    for arm in [
        "Self::A{0:_0}=>::automaton_core::error::Classified::kind(_0),",
        "Self::A{0:_0}=>::automaton_core::error::Classified::hint(_0),",
        "Self::B{id,source}=>::automaton_core::error::Classified::kind(source),",
        "Self::B{id,source}=>Some(\"Wait.\".to_owned()),",
        "=>of(*status),",
        "=>Option::<String>::from(remedy.clone()),",
    ] {
        assert!(text.contains(arm), "{arm} in {text}");
    }
}

#[test]
fn a_whole_type_can_have_one_class() {
    let text = written(quote!(
        #[class(User, hint = "Wait.")]
        enum E {
            A,
            B(u8),
        }
    ));
    assert!(text.contains("matchself{_=>::automaton_core::error::ErrorClass::User,}"), "{text}");
    let text = written(quote!(
        #[class(kind = *kind)]
        struct E {
            kind: ErrorClass,
        }
    ));
    assert!(text.contains("matchself{Self{kind}=>*kind,}"), "{text}");
    let text = written(quote!(
        #[class(Config)]
        struct E;
    ));
    assert!(text.contains("matchself{Self=>"), "{text}");
}

#[test]
fn what_has_no_class_is_refused() {
    let cases = [
        (
            quote!(
                enum E {
                    #[class(User)]
                    A,
                    B,
                }
            ),
            "`B` has no class: write #[class(User)]",
        ),
        (
            quote!(
                struct E;
            ),
            "`E` has no class",
        ),
        (
            quote!(
                enum E {
                    #[class()]
                    A,
                }
            ),
            "expected identifier",
        ),
        (
            quote!(
                enum E {
                    #[class(User, hnt = "")]
                    A,
                }
            ),
            "what follows the class is `hint = …`",
        ),
        (
            quote!(
                enum E {
                    #[class(User)]
                    #[class(Config)]
                    A,
                }
            ),
            "one #[class(…)] is enough",
        ),
        (
            quote!(
                #[class(User)]
                enum E {
                    #[class(Config)]
                    A,
                }
            ),
            "all variants have a class already",
        ),
        (
            quote!(
                enum E {
                    #[class(from)]
                    A { a: u8, b: u8 },
                }
            ),
            "`A` has no class",
        ),
    ];
    for (input, expected) in cases {
        let text = written(input);
        assert!(text.starts_with("refused: ") && text.contains(expected), "{expected}: {text}");
    }
}
