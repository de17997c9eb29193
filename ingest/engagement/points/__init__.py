"""Points as money: redemptions, holds, the balance."""
