//! Accounts, from the wire and back.

use std::collections::HashMap;

use chassis::{Error, error::InField as _};
use proto::{UserId, freshet::user::v1 as wire, timestamp};
use store::ledger::{Account, Counters};

use crate::people::{
    People,
    accounts::{BATCH_USERS_MAX, SignUp, Update},
    email::Email,
    name::{Bio, DisplayName, Handle},
    password::Password,
};

pub(super) async fn sign_up(people: &People, wire: wire::SignUpRequest) -> Result<wire::SignUpResponse, Error> {
    let handle = Handle::chosen(&wire.handle).in_field("handle")?;
    let name = DisplayName::new(&wire.display_name, &handle).in_field("display_name")?;
    let email = Email::optional(&wire.email).in_field("email")?;
    let password = Password::chosen(wire.password).in_field("password")?;
    let account = people.sign_up(SignUp { handle, name, email, password }).await?;
    Ok(wire::SignUpResponse { user: Some(user(account)) })
}

pub(super) async fn get_user(people: &People, wire: wire::GetUserRequest) -> Result<wire::GetUserResponse, Error> {
    let id = wire.user_id.parse().in_field("user_id")?;
    let account = people.user(id).await?;
    Ok(wire::GetUserResponse { user: Some(counted(people, account).await?) })
}

pub(super) async fn batch_get_users(
    people: &People,
    wire: wire::BatchGetUsersRequest,
) -> Result<wire::BatchGetUsersResponse, Error> {
    if !(1..=BATCH_USERS_MAX).contains(&wire.user_ids.len()) {
        let rule = format!("must be 1 to {BATCH_USERS_MAX} ids, and are {}", wire.user_ids.len());
        return Err(Error::invalid("user_ids", rule));
    }
    let parse = |(place, id): (usize, &String)| {
        id.parse::<UserId>().map_err(|rule| Error::invalid(format!("user_ids[{place}]"), rule))
    };
    let ids = wire.user_ids.iter().enumerate().map(parse).collect::<Result<Vec<_>, _>>()?;
    let (users, missing) = people.users(&ids).await?;
    let counters = people.counters(&ids).await?;
    Ok(wire::BatchGetUsersResponse {
        users: users.into_iter().map(|account| with_counters(account, &counters)).collect(),
        missing_ids: missing.iter().map(ToString::to_string).collect(),
    })
}

pub(super) async fn get_user_by_handle(
    people: &People,
    wire: wire::GetUserByHandleRequest,
) -> Result<wire::GetUserByHandleResponse, Error> {
    let handle = Handle::new(&wire.handle).in_field("handle")?;
    let account = people.user_by_handle(handle).await?;
    Ok(wire::GetUserByHandleResponse { user: Some(counted(people, account).await?) })
}

pub(super) async fn get_account(
    people: &People,
    wire: wire::GetAccountRequest,
) -> Result<wire::GetAccountResponse, Error> {
    let own = people.own_account(wire.user_id.parse().in_field("user_id")?).await?;
    let user = Some(counted(people, own.account).await?);
    Ok(wire::GetAccountResponse { user, email: own.email.unwrap_or_default() })
}

pub(super) async fn update_profile(
    people: &People,
    wire: wire::UpdateProfileRequest,
) -> Result<wire::UpdateProfileResponse, Error> {
    let id = wire.user_id.parse().in_field("user_id")?;
    let paths = wire.update_mask.map(|mask| mask.paths).unwrap_or_default();
    if paths.is_empty() {
        return Err(Error::invalid("update_mask", "must name what changes: display_name, bio, email"));
    }
    let mut update = Update::default();
    for path in paths {
        match path.as_str() {
            "display_name" => {
                update.name = Some(DisplayName::optional(&wire.display_name).in_field("display_name")?);
            }
            "bio" => update.bio = Some(Bio::new(&wire.bio).in_field("bio")?),
            "email" => update.email = Some(Email::optional(&wire.email).in_field("email")?),
            _ => {
                return Err(Error::invalid("update_mask", "must name no other fields than display_name, bio, email"));
            }
        }
    }
    let own = people.update_profile(id, update).await?;
    let user = Some(counted(people, own.account).await?);
    Ok(wire::UpdateProfileResponse { user, email: own.email.unwrap_or_default() })
}

pub(super) async fn delete_account(
    people: &People,
    wire: wire::DeleteAccountRequest,
) -> Result<wire::DeleteAccountResponse, Error> {
    people.delete_account(wire.user_id.parse().in_field("user_id")?).await?;
    Ok(wire::DeleteAccountResponse {})
}

/// A person and their numbers.
async fn counted(people: &People, account: Account) -> Result<wire::User, Error> {
    let counters = people.counters(&[account.id]).await?;
    Ok(with_counters(account, &counters))
}

fn with_counters(account: Account, counters: &HashMap<UserId, Counters>) -> wire::User {
    let counters = counters.get(&account.id);
    let to_wire = |counters: &Counters| wire::UserCounters {
        followers: counters.followers,
        following: counters.following,
        posts: counters.posts,
    };
    let private = counters.map(|counters| counters.private);
    wire::User { counters: counters.map(to_wire), private, ..user(account) }
}

/// A person as others see them.
pub(super) fn user(account: Account) -> wire::User {
    wire::User {
        id: account.id.to_string(),
        handle: account.handle,
        display_name: account.display_name,
        created_at: Some(timestamp(account.created_at_ms)),
        bio: account.bio,
        counters: None,
        private: None,
    }
}
