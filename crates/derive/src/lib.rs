//! `#[derive(Classified)]` declares the class and the remedy of an error at the error.
//! `#[derive(Names)]` declares the names of an enumeration's values at the values.
//!
//! The compiler runs this code, and no program links it. It must never invent a class: a new
//! variant without one is a compile error.

mod names;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, LitStr, Member, Result, Token,
    Variant,
};

/// Implements `automaton_core::error::Classified`.
///
/// Each variant, or the whole type, has an attribute `#[class(KIND, hint = HINT)]`. `KIND` is a
/// variant of `ErrorClass`, or `kind = EXPRESSION`, or `from` for the class of the cause. `HINT`
/// is optional: arguments of `format!`, or an expression of type `String` or `Option<String>`.
/// Expressions see references to the fields by name, unnamed fields as `_0`, `_1`, and for a
/// whole enum `self`.
///
/// A variant needs no attribute if its cause (a field with `#[from]` or `#[source]`, or named
/// `source`) is `Classified`. It then has the class and the hint of its cause.
#[proc_macro_derive(Classified, attributes(class))]
pub fn classified(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    implement(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Adds `ALL` (the values in order), `name`, `by_name` and `Display` to an enumeration. `Display`
/// shows the name.
///
/// A name is the variant in snake case. `#[names(rename_all = "kebab-case")]` or
/// `"SCREAMING_SNAKE_CASE"` on the enumeration sets another case, and `#[names(rename = "…")]` on
/// a variant another name.
#[proc_macro_derive(Names, attributes(names))]
pub fn names(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    names::implement(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// The content of a `#[class]` attribute.
struct Class {
    kind: ClassKind,
    hint: Option<TokenStream>,
}

enum ClassKind {
    Named(Ident),
    Cause,
    Computed(Expr),
}

impl Parse for Class {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let word: Ident = input.parse()?;
        let kind = match word.to_string().as_str() {
            "from" => ClassKind::Cause,
            "kind" => {
                input.parse::<Token![=]>()?;
                ClassKind::Computed(input.parse()?)
            }
            _ => ClassKind::Named(word),
        };
        if input.is_empty() {
            return Ok(Self { kind, hint: None });
        }
        input.parse::<Token![,]>()?;
        let word: Ident = input.parse()?;
        if word != "hint" {
            return Err(Error::new(word.span(), "what follows the class is `hint = …`"));
        }
        input.parse::<Token![=]>()?;
        Ok(Self { kind, hint: Some(hint(&input.parse()?)) })
    }
}

/// Returns the expression of a hint, from the tokens after `hint =`.
fn hint(tokens: &TokenStream) -> TokenStream {
    let is_text = |tokens| syn::parse2::<LitStr>(tokens).is_ok();
    match syn::parse2::<LitStr>(tokens.clone()) {
        Ok(text) if !text.value().contains(['{', '}']) => quote!(Some(#text.to_owned())),
        _ if tokens.clone().into_iter().next().is_some_and(|first| is_text(first.into())) => {
            quote!(Some(format!(#tokens)))
        }
        _ => quote!(Option::<String>::from(#tokens)),
    }
}

fn class_of(attributes: &[Attribute]) -> Result<Option<Class>> {
    let mut found = attributes.iter().filter(|one| one.path().is_ident("class"));
    let class = found.next().map(Attribute::parse_args).transpose()?;
    match found.next() {
        Some(second) => Err(Error::new_spanned(second, "one #[class(…)] is enough")),
        None => Ok(class),
    }
}

fn implement(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let arms = match (&input.data, class_of(&input.attrs)?) {
        (Data::Struct(data), class) => vec![Arm::new(&quote!(Self), name, &data.fields, class)?],
        (Data::Enum(data), None) => {
            data.variants.iter().map(Arm::of_variant).collect::<Result<_>>()?
        }
        (Data::Enum(data), class) => {
            for variant in &data.variants {
                if class_of(&variant.attrs)?.is_some() {
                    return Err(Error::new_spanned(variant, "all variants have a class already"));
                }
            }
            vec![Arm::new(&quote!(_), name, &Fields::Unit, class)?]
        }
        (Data::Union(_), _) => return Err(Error::new_spanned(name, "a union is no error")),
    };
    let kinds = arms.iter().map(|Arm { pattern, kind, .. }| quote!(#pattern => #kind));
    let hints = arms.iter().map(|Arm { pattern, hint, .. }| quote!(#pattern => #hint));
    Ok(quote! {
        #[automatically_derived]
        impl ::automaton_core::error::Classified for #name {
            fn kind(&self) -> ::automaton_core::error::ErrorClass {
                match self { #(#kinds,)* }
            }

            fn hint(&self) -> Option<String> {
                match self { #(#hints,)* }
            }
        }
    })
}

/// A match arm of each of the two functions.
struct Arm {
    pattern: TokenStream,
    kind: TokenStream,
    hint: TokenStream,
}

impl Arm {
    fn of_variant(variant: &Variant) -> Result<Self> {
        let name = &variant.ident;
        Self::new(&quote!(Self::#name), name, &variant.fields, class_of(&variant.attrs)?)
    }

    /// Creates the arm for `path`. `name` is used in messages.
    fn new(
        path: &TokenStream,
        name: &Ident,
        fields: &Fields,
        class: Option<Class>,
    ) -> Result<Self> {
        let bound = fields.members().zip(fields).map(|(member, field)| match &member {
            Member::Named(name) => (name.clone(), quote!(#name), field),
            Member::Unnamed(index) => {
                let name = format_ident!("_{}", index.index);
                (name.clone(), quote!(#member: #name), field)
            }
        });
        let bound: Vec<(Ident, TokenStream, &Field)> = bound.collect();
        let cause = bound.iter().find(|(name, _, field)| name == "source" || is_cause(field));
        let class = class.unwrap_or(Class { kind: ClassKind::Cause, hint: None });
        let (kind, passed_on) = match (class.kind, cause) {
            (ClassKind::Named(word), _) => {
                (quote!(::automaton_core::error::ErrorClass::#word), None)
            }
            (ClassKind::Computed(kind), _) => (kind.into_token_stream(), None),
            (ClassKind::Cause, Some((cause, _, field))) => {
                let kind = quote_spanned!(field.ty.span()=> ::automaton_core::error::Classified::kind(#cause));
                (kind, Some(quote!(::automaton_core::error::Classified::hint(#cause))))
            }
            (ClassKind::Cause, None) => {
                let fault = format!(
                    "`{name}` has no class: write #[class(User)], or who else has to act, with \
                     `, hint = \"…\"` where there is a remedy"
                );
                return Err(Error::new_spanned(name, fault));
            }
        };
        let hint = class.hint.or(passed_on).unwrap_or_else(|| quote!(None));
        let fields = bound.iter().map(|(_, bound, _)| bound);
        let pattern = match bound[..] {
            [] => path.clone(),
            _ => quote!(#path { #(#fields),* }),
        };
        Ok(Self { pattern, kind, hint })
    }
}

fn is_cause(field: &Field) -> bool {
    field.attrs.iter().any(|one| one.path().is_ident("from") || one.path().is_ident("source"))
}

#[cfg(test)]
mod tests;
