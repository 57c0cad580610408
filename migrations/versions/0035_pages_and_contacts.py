"""Keep contacts of people, channels of projects, and the pages that are sent to them."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _where(condition: str) -> dict[str, sa.TextClause]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def upgrade() -> None:
    """Go forward."""
    _create_page_totals()
    _create_contacts()
    _create_page_recipients()
    _create_page_batches()
    _create_page_messages()
    _create_pages()
    op.add_column("alert_notes", sa.Column("via", sa.String(length=64)))


def _create_page_totals() -> None:
    op.create_table(
        "page_totals",
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("count", ID, nullable=False),
        sa.PrimaryKeyConstraint("type", "outcome", name="pk_page_totals"),
    )


def _create_contacts() -> None:
    op.create_table(
        "contacts",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID),
        sa.Column("project_id", ID),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("label", sa.String(length=100), nullable=False),
        sa.Column("address_ciphertext", sa.Text()),
        sa.Column("shown_address", sa.String(length=255), nullable=False),
        sa.Column("lane", sa.String(length=255), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("confirmed_at", TIME),
        sa.Column("code_ciphertext", sa.Text()),
        sa.Column("code_expires_at", TIME),
        sa.Column("code_tries", sa.SmallInteger(), nullable=False),
        sa.Column("next_try_at", TIME),
        sa.Column("claim", ID, nullable=False),
        sa.Column("claimed_until", TIME),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("failing_since", TIME),
        sa.Column("last_failed_at", TIME),
        sa.Column("last_error", sa.Text()),
        sa.Column("last_sent_at", TIME),
        sa.CheckConstraint(
            "(user_id IS NULL) <> (project_id IS NULL)", name="ck_contacts_one_owner"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_contacts_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_contacts_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_contacts"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_contacts_next_try_at", "contacts", ["next_try_at"], **_where("next_try_at IS NOT NULL")
    )
    op.create_index("ix_contacts_project_id", "contacts", ["project_id"])
    op.create_index("ix_contacts_user_id", "contacts", ["user_id"])
    op.create_index(
        "uq_contacts_account_email",
        "contacts",
        ["user_id"],
        unique=True,
        **_where("address_ciphertext IS NULL"),
    )


def _create_page_recipients() -> None:
    op.create_table(
        "page_recipients",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID),
        sa.Column("contact_id", ID),
        sa.Column("due_at", TIME),
        sa.Column("last_page_at", TIME),
        sa.Column("last_message_at", TIME),
        sa.Column("time_zone", sa.String(length=64), nullable=False),
        sa.Column("quiet_from", sa.SmallInteger()),
        sa.Column("quiet_until", sa.SmallInteger()),
        sa.Column("critical_breaks_quiet", sa.Boolean(), nullable=False),
        sa.Column("wants_follow_ups", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "(user_id IS NULL) <> (contact_id IS NULL)", name="ck_page_recipients_one_kind"
        ),
        sa.ForeignKeyConstraint(
            ["contact_id"],
            ["contacts.id"],
            name="fk_page_recipients_contact_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_page_recipients_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_page_recipients"),
        sa.UniqueConstraint("contact_id", name="uq_page_recipients_contact_id"),
        sa.UniqueConstraint("user_id", name="uq_page_recipients_user_id"),
    )
    op.create_index(
        "ix_page_recipients_due_at", "page_recipients", ["due_at"], **_where("due_at IS NOT NULL")
    )


def _create_page_batches() -> None:
    op.create_table(
        "page_batches",
        sa.Column("id", ID, nullable=False),
        sa.Column("recipient_id", ID, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["recipient_id"],
            ["page_recipients.id"],
            name="fk_page_batches_recipient_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_page_batches"),
    )
    op.create_index("ix_page_batches_created_at", "page_batches", ["created_at"])
    op.create_index("ix_page_batches_recipient_id_id", "page_batches", ["recipient_id", "id"])


def _create_page_messages() -> None:
    op.create_table(
        "page_messages",
        sa.Column("id", ID, nullable=False),
        sa.Column("contact_id", ID, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("batch_id", ID),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("outcome", sa.String(length=16)),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.Text()),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["page_batches.id"], name="fk_page_messages_batch_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["contact_id"], ["contacts.id"], name="fk_page_messages_contact_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_page_messages"),
    )
    op.create_index("ix_page_messages_batch_id", "page_messages", ["batch_id"])
    op.create_index("ix_page_messages_contact_id_id", "page_messages", ["contact_id", "id"])
    op.create_index("ix_page_messages_ended_at", "page_messages", ["ended_at"])
    op.create_index(
        "ix_page_messages_waiting",
        "page_messages",
        ["contact_id", "id"],
        **_where("ended_at IS NULL"),
    )


def _create_pages() -> None:
    op.create_table(
        "pages",
        sa.Column("id", ID, nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("recipient_id", ID, nullable=False),
        sa.Column("alert_id", ID, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("is_critical", sa.Boolean(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("batch_id", ID),
        sa.Column("withdrawn_at", TIME),
        sa.ForeignKeyConstraint(
            ["alert_id"], ["alerts.id"], name="fk_pages_alert_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["page_batches.id"], name="fk_pages_batch_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["recipient_id"],
            ["page_recipients.id"],
            name="fk_pages_recipient_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_pages"),
        sa.UniqueConstraint("key", name="uq_pages_key"),
    )
    op.create_index("ix_pages_alert_id", "pages", ["alert_id"])
    op.create_index("ix_pages_batch_id", "pages", ["batch_id"])
    op.create_index("ix_pages_created_at", "pages", ["created_at"])
    op.create_index(
        "ix_pages_waiting",
        "pages",
        ["recipient_id", "due_at"],
        **_where("batch_id IS NULL AND withdrawn_at IS NULL"),
    )


def downgrade() -> None:
    """Go back."""
    op.drop_column("alert_notes", "via")
    for table in (
        "pages",
        "page_messages",
        "page_batches",
        "page_recipients",
        "contacts",
        "page_totals",
    ):
        op.drop_table(table)
